# %% runs backward and looks who has a gradient
# This runs backward: walk through the graph from output.grad_fn by next_functions, without computing
# anything.
def find_unused(output, module):
    output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% asks autograd.grad
# This runs backward: walk through the graph from output.grad_fn by next_functions, without computing
# anything.
def find_unused(output, module):
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    grads = torch.autograd.grad(
        output.sum(), list(trained.values()), retain_graph=True, allow_unused=True
    )
    return [n for n, g in zip(trained, grads) if g is None]


# %% looks at p.grad without a backward
# The result depends on which `p.grad` is None, which backward has not set yet. Walk from output.grad_fn: a
# parameter is used if you reach its AccumulateGrad node (`node.variable`).
def find_unused(output, module):
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% calls itself | crashed
# The graph is deeper than Python's recursion limit: use a list of nodes to visit.
def find_unused(output, module):
    seen, used = set(), set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        for following, _ in node.next_functions:
            visit(following)

    visit(output.grad_fn)
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% visits every path | timed out
# The graph joins again and again, so the number of paths doubles at each join. Keep a set of the nodes that
# you have seen, and visit each once.
def find_unused(output, module):
    todo, used = [output.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            used.add(id(node.variable))
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and id(p) not in used]


# %% None among next_functions | crashed
# `next_functions` contains None where an input needs no gradient, and an output without a graph has None as
# its grad_fn: skip them.
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]


# %% frozen ones too
# Frozen parameters are among the names: only those with requires_grad=True are wanted.
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [n for n, p in module.named_parameters() if p not in used]


# %% parameters, not their names
# Return a list of names: `[name for name, p in ...]`.
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], set(), set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.add(node.variable)
        todo += [following for following, _ in node.next_functions]
    return [p for p in module.parameters() if p.requires_grad and p not in used]


# %% the used ones
# These are the parameters that are used: return the others.
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


# %% a shared weight under both names, sorted
# These are the right names in another order: return them in the order of named_parameters().
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
    return sorted(
        (n for n, p in module.named_parameters() if p.requires_grad and p not in used), reverse=True
    )


# %% prints
# Nothing is returned: return a list of names.
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


# %% clears the gradients first, then runs backward
# This runs backward: walk through the graph from output.grad_fn by next_functions, without computing
# anything.
def find_unused(output, module):
    module.zero_grad()
    if output.grad_fn is not None:
        output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% sorted by name
# These are the right names in another order: return them in the order of named_parameters().
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
    return sorted(n for n, p in module.named_parameters() if p.requires_grad and p not in used)


# %% compares values
# A parameter with the same values as a used one counts as used: compare parameters with `is`, or by `id`.
def find_unused(output, module):
    todo, seen, used = [output.grad_fn], {None}, []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            used.append(node.variable)
        todo += [following for following, _ in node.next_functions]
    trained = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
    return [n for n, p in trained if not any(torch.equal(p, other) for other in used)]


# %% follows the last input of each node only
# Some used parameters are missed: follow all `next_functions` of a node, not just one.
def find_unused(output, module):
    node, used = output.grad_fn, set()
    while node is not None:
        if hasattr(node, "variable"):
            used.add(node.variable)
        following = [each for each, _ in node.next_functions if each is not None]
        node = following[-1] if following else None
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in used]
