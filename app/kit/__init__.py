"""What every room may draw with: theme, numbers in words, charts, the sentence above a chart."""
