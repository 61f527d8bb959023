"""The command line: options in, one call of the public interface, files and a summary out."""
