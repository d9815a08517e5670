"""Run the board as a service of JupyterHub, whose users are the learners and whose administrators teach.

learner's kernel --its token--> board --> hub: whose is it?
teacher's browser --> login --> hub: who are you? --> callback --> board
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

MAX_PENDING_LOOKUPS = 200
"""Maximum number of requests waiting for the hub's answer at the same time."""
TOKEN_VARIABLE = "REAL_RANKS_ROOM_TOKEN"
"""The variable that contains a token for the board in a user's server."""
_TOKEN_NOTE = "Real Ranks: tells the board who this is"
_TEACHERS_VARIABLE = "REAL_RANKS_TEACHERS"


class Hub:
    """Requests to the hub, configured by the variables that the hub sets for its services."""

    def __init__(self) -> None:
        # import it here, because most boards have no hub
        from jupyterhub.services.auth import HubOAuth

        self._auth: Any = HubOAuth(cache_max_age=60)
        # Anyone can invent tokens, and each causes a request to the hub. A slow hub blocks only these
        # threads.
        self._lookup_threads = ThreadPoolExecutor(4, "room-hub")
        self._pending_lookups = 0
        self.prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"].rstrip("/")

    async def find_login(self, token: str) -> str:
        """Return the login of the token's user, or "".

        Raise HTTPException if too many requests are already waiting for the hub.
        """
        if self._pending_lookups >= MAX_PENDING_LOOKUPS:
            raise HTTPException(503, "The board waits for JupyterHub. Try again.")
        self._pending_lookups += 1
        try:
            user = await asyncio.get_running_loop().run_in_executor(
                self._lookup_threads, self._auth.user_for_token, token
            )
        finally:
            self._pending_lookups -= 1
        return str(user["name"]) if user and user.get("kind") == "user" else ""

    def login_routes(self, redirect_teacher: Callable[[], Response]) -> tuple[Route, ...]:
        """Return the routes for a teacher's login: to the hub and back."""

        async def start_login(request: Request) -> Response:
            state = self._auth.generate_state(next_url=f"{self.prefix}/board")
            response = RedirectResponse(f"{self._auth.login_url}&state={state}", 303)
            # The hub's answer is a cross-site redirect, so this cookie cannot be strict.
            response.set_cookie(
                self._auth.state_cookie_name, state, path=self.prefix, httponly=True, samesite="lax"
            )
            return response

        async def finish_login(request: Request) -> Response:
            state = request.cookies.get(self._auth.state_cookie_name)
            code = request.query_params.get("code")
            if not code or not state or request.query_params.get("state") != state:
                raise HTTPException(
                    403, "This login was not started by the board: open the board again."
                )
            token = await asyncio.to_thread(self._auth.token_for_code, code)
            user = await asyncio.to_thread(self._auth.user_for_token, token)
            if not user or not _is_teacher(user):
                raise HTTPException(
                    403, f"The board is for administrators and {_TEACHERS_VARIABLE}."
                )
            return redirect_teacher()

        return Route("/login", start_login), Route("/oauth_callback", finish_login)


def give_token(spawner: Any) -> None:
    """Put a token that only identifies the user into a server's environment.

    Use this function as `c.Spawner.pre_spawn_hook`. The server's own token would also identify the user, but
    it allows running code as that user, so it must not be sent to an unknown program that might listen at the
    board's address.
    """
    user = spawner.user
    for token in list(user.api_tokens):
        if token.note == _TOKEN_NOTE:
            user.db.delete(token)
    user.db.commit()
    token = user.new_api_token(note=_TOKEN_NOTE, scopes=["access:services!service=room"])
    spawner.environment = {**spawner.environment, TOKEN_VARIABLE: token}


def _is_teacher(user: dict[str, Any]) -> bool:
    named = os.environ.get(_TEACHERS_VARIABLE, "").replace(",", " ").split()
    return bool(user.get("admin")) or user.get("name") in named
