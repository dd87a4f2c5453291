"""Copied into the sandbox: these files run beside the student's code, never in the grader."""
