"""What a stencil is: expressions, statements, checks, the interpreter that defines it, costs, derivatives, transposes."""
