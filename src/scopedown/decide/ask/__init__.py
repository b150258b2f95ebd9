"""How each question is asked: one file a kind of tool, each function a Context to a Command."""
