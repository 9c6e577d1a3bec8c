"""Does the file do what the module does?"""
