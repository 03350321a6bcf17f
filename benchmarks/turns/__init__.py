"""What does a turn of the dispatcher cost with a full fleet before it?"""
