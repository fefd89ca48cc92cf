"""A class that follows its teacher's screen: who is in, what is asked, and what was said."""
