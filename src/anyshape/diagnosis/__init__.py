"""Why a dim cannot vary: causes, the words about them, and edits that were tried. On trouble, but for two doubts.

`doubts` looks at every model, also where its file is right: whether samples of a batch mix, and whether a size was
written as a number. All else here runs only once a declared size cannot be served, or a doubt was found.
"""
