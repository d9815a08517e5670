# %% right: a generator walks, a dict keeps the order
def _nodes(node):
    todo, seen = [node] if node is not None else [], {node}
    while todo:
        here = todo.pop(0)
        yield here
        fresh = dict.fromkeys(n for n, _ in here.next_functions if n is not None and n not in seen)
        seen.update(fresh)
        todo.extend(fresh)


def find_unused(output, module):
    left = {id(p): name for name, p in module.named_parameters() if p.requires_grad}
    for node in _nodes(output.grad_fn):
        left.pop(id(getattr(node, "variable", None)), None)
    return [*left.values()]


# %% right: the order of the names looked up at the end
def find_unused(output, module):
    stack, seen, reached = [output.grad_fn], {None}, []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            reached += [node.variable] if hasattr(node, "variable") else []
            stack.extend(n for n, _ in node.next_functions)
    ids = list(map(id, reached))
    return [name for name, p in module.named_parameters() if id(p) not in ids and p.requires_grad]


# %% wrong: the used ones | wrong | says: the others are wanted
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and p in used]


# %% wrong: a shared weight under both names, sorted | wrong | says: each is wanted once, in the order
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return sorted((n for n, p in module.named_parameters() if p.requires_grad and p not in used), reverse=True)


# %% wrong: prints | wrong | says: It returns nothing: a list of names
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    print([n for n, p in module.named_parameters() if p.requires_grad and p not in used])


# %% wrong: follows the last input of each function only | wrong | says: names: 
def find_unused(output, module):
    node, used = output.grad_fn, set()
    while node is not None:
        if hasattr(node, "variable"):
            used.add(node.variable)
        followers = [n for n, _ in node.next_functions if n is not None]
        node = followers[-1] if followers else None
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% wrong: clears the gradients first, then runs backward | wrong | says: nothing needs to be computed
def find_unused(output, module):
    module.zero_grad()
    if output.grad_fn is not None:
        output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]
