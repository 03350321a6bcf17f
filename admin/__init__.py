"""The ``fairway`` command: capacity reports, reasons and what-if questions for administrators."""
