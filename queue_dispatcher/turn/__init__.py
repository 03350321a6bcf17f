"""What a turn decides beside the admission cycle: release window, kicks, what is overdue."""
