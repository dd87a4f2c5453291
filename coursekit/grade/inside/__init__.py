"""Files that are copied into the sandbox and run with the student's code, never in the grader."""
