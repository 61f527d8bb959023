"""Arrays in, arrays out: the same functions written as formulas (`*_ref`) and fast (`*_cpu`)."""
