"""The board as a service of JupyterHub: users have joined, and the hub's administrators are teachers.

learner's kernel --its own token--> board --> hub: whose is it?
teacher's browser --> login --> hub: who are you? --> callback --> board
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

_TEACHERS = "REAL_RANKS_TEACHERS"


class Hub:
    """What the hub is asked. Configured by the variables that the hub sets for its services."""

    def __init__(self) -> None:
        from jupyterhub.services.auth import HubOAuth  # only here: most boards have no hub

        self._auth: Any = HubOAuth(cache_max_age=60)
        self.prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"].rstrip("/")

    async def who_is(self, token: str) -> str:
        """Return the login of the user whose token this is, or ""."""
        user = await asyncio.to_thread(self._auth.user_for_token, token)
        return str(user["name"]) if user and user.get("kind") == "user" else ""

    def login(self, let_in: Callable[[], Response]) -> tuple[Route, ...]:
        """Return the routes by which a teacher logs in: to the hub and back."""

        async def to_the_hub(request: Request) -> Response:
            state = self._auth.generate_state(next_url=f"{self.prefix}/board")
            response = RedirectResponse(f"{self._auth.login_url}&state={state}", 303)
            # The hub's answer is a cross-site redirect, so this one cannot be strict.
            response.set_cookie(
                self._auth.state_cookie_name, state, path=self.prefix, httponly=True, samesite="lax"
            )
            return response

        async def back(request: Request) -> Response:
            state = request.cookies.get(self._auth.state_cookie_name)
            code = request.query_params.get("code")
            if not code or not state or request.query_params.get("state") != state:
                raise HTTPException(
                    403, "This login is not one that the board began: open it again."
                )
            token = await asyncio.to_thread(self._auth.token_for_code, code)
            user = await asyncio.to_thread(self._auth.user_for_token, token)
            if not user or not _is_teacher(user):
                raise HTTPException(403, f"The board is for administrators and {_TEACHERS}.")
            return let_in()

        return Route("/login", to_the_hub), Route("/oauth_callback", back)


def _is_teacher(user: dict[str, Any]) -> bool:
    named = os.environ.get(_TEACHERS, "").replace(",", " ").split()
    return bool(user.get("admin")) or user.get("name") in named
