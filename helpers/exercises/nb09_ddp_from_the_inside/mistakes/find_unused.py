# %% runs backward and looks who has a gradient
# Begin at output.grad_fn and follow next_functions: nothing needs to be computed.
def find_unused(output, module):
    output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% asks autograd.grad
# Begin at output.grad_fn and follow next_functions: nothing needs to be computed.
def find_unused(output, module):
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    grads = torch.autograd.grad(
        output.sum(), list(trained.values()), retain_graph=True, allow_unused=True
    )
    return [n for n, g in zip(trained, grads) if g is None]


# %% looks at p.grad without a backward
# Reached are those parameters whose AccumulateGrad node (`node.variable`) you come to.
def find_unused(output, module):
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]


# %% calls itself | crashed
# This graph is deeper than Python's recursion goes: use a list of what is to visit.
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
# The graph joins again and again, so the number of paths doubles at each joint. Keep a set of the
# functions that you have seen, and visit each once.
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
# `next_functions` has None where an input needs no gradient, and an output without a graph has None for
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
# Only parameters with requires_grad=True are meant.
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
# Give the names back by `return`, as a list: `[name for name, p in ...]`.
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
# These are the parameters that are used: the others are wanted.
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
# These are the right names, but each is wanted once, in the order of named_parameters().
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
# It returns nothing: a list of names is wanted.
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
# Begin at output.grad_fn and follow next_functions: nothing needs to be computed.
def find_unused(output, module):
    module.zero_grad()
    if output.grad_fn is not None:
        output.sum().backward(retain_graph=True)
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]
