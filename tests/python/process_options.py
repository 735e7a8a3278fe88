"""Options as one text, of solvers and of the process."""

import asterism as am


def given(options):
    """Set the options of the process among these, and return the others, for a solver."""
    known, words, rest = am.configure(), options.split(), []
    while words:
        name = words.pop(0)
        value = words.pop(0) if words and not words[0].startswith("-") else "true"
        if name[1:] in known:
            am.configure(**{name[1:]: value})
        else:
            rest += [name, value]
    return " ".join(rest)
