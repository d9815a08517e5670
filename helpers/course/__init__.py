"""Everything around the exercises: the learner's folder, progress, hints, quizzes, and the `course` tool.

For learners:
    home             the page with the next step and the map
    hints            hint()
    quizzes          predict()
    show_me          show_me()
    after_magic      %%after
    next_steps       the next exercise or notebook
    progress         finished exercises, in one file
    can_do           a page about finished exercises
    unknown_name     advice on names defined in earlier cells
    show_message     short texts in a notebook or a terminal
Paths:
    paths            the paths through the course
    path_lines       lines in a notebook about a path
    path_picture     the picture at the end of a path
The command `course`:
    cli              the command and its errors
    commands         commands for learners
    author_commands  commands for authors
    command_parts    parts shared by commands
    targets          notebooks and exercises named by an argument
    as_json          results as JSON
    doctor           a test of the machine
    definitions      functions defined twice in a notebook
    watch_command    checks at each save
    saves            saved notebooks in a folder
Jupyter:
    greet            a new kernel
    kernel           the course's kernel
    look             the extension of JupyterLab's server
    hub              setting up the course on a hub
    programs         the environment's programs on PATH
    workspace        the learner's folder
Notebooks:
    notebook_file    notebook files as data
    open_notebook    the file of the running notebook
    build            learners' copies of solved notebooks
    links            links between notebooks
    outputs          stored outputs
    claims           claims in the text about outputs
    export           exports without widgets
    page             HTML from templates
    site             the course as static pages
"""
