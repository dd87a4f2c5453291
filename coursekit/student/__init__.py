"""What the commands of a student do: open a workbook, run a lecture, check homework."""
