"""Is a wrong file called wrong, and a right one right?"""
