"""The student's commands: open a workbook, run a lecture, check homework."""
