"""Why a dim cannot vary, and where: causes, their wording, and edits that were tried before they are shown."""
