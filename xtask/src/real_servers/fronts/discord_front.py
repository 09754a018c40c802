"""Discord, as the package `simcord` plays it, on sockets.

What a guild, a message or a permission is, the package says. Here is only what lies between it and a bot: the REST
address, the gateway with its sessions, and `/person/…`, by which a test is somebody who talks to the bot.

Settings come as variables: PORT and BOT_TOKEN.
"""

import asyncio
import copy
import datetime
import io
import json
import os
import types

import discord
from aiohttp import WSMsgType, web
from simcord import intents as intent_rules
from simcord import interactions
from simcord.backend import Backend, cdn, serializers
from simcord.backend.errors import BackendError
from simcord.backend.ops import base
from simcord.http import client as _registers_the_routes  # noqa: F401
from simcord.http import router

PORT = int(os.environ["PORT"])
TOKEN = os.environ["BOT_TOKEN"]
HTTP = f"http://127.0.0.1:{PORT}"
GATEWAY = f"ws://127.0.0.1:{PORT}/gateway"
HEARTBEAT = 5_000

# A bot in a few guilds may read what is said without having been reviewed.
READS_CONTENT = 1 << 19

DISPATCH, HEARTBEAT_OP, IDENTIFY, RESUME, INVALID, HELLO, HEARD = 0, 1, 2, 6, 9, 10, 11

cdn.CDN_BASE = f"{HTTP}/cdn"


class RealTime(base.Clock):
    def now(self):
        return datetime.datetime.now(datetime.timezone.utc)


class Session:
    """What one identified bot was told, so that it can be told again."""

    def __init__(self, key, intents):
        self.key, self.intents, self.told, self.socket = key, intents, [], None

    def tell(self, event, data):
        told = {"op": DISPATCH, "t": event, "s": len(self.told) + 1, "d": data}
        self.told.append(told)
        if self.socket is not None:
            # Frames of one socket are written in the order in which they are handed over.
            asyncio.ensure_future(write(self.socket, told))


class World:
    """The guild, the people and the bot's sessions."""

    def __init__(self):
        self.backend = Backend(clock=RealTime())
        self.alice = self.backend.make_user("alice")
        self.guild = self.backend.create_guild("Lab")
        self.backend.add_member(self.guild.id, self.alice.id)
        self.channel = self.backend.create_channel(self.guild.id, "general")
        self.sessions, self.resumed, self.edits, self.signs = {}, 0, {}, []
        # What a key was first used for; Discord recognises it for a few minutes.
        self.nonces = {}
        self.backend.subscribers.append(self.happened)

    def happened(self, event, payload):
        if event == "MESSAGE_UPDATE":
            self.edits[payload["id"]] = self.edits.get(payload["id"], 0) + 1
        for session in self.sessions.values():
            needed = intent_rules.required_intent(event, payload)
            if needed and not getattr(session.intents, needed):
                continue
            data = copy.deepcopy(dict(payload))
            if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and not session.intents.message_content:
                intent_rules.censor_message(data, self.backend.bot_user.id, backend=self.backend)
            session.tell(event, data)

    def begin(self, asked):
        session = Session(f"session-{len(self.sessions) + 1}", discord.Intents._from_value(asked["intents"]))
        self.sessions[session.key] = session
        return session

    def welcome(self, session, shard):
        session.tell("READY", {
            "v": 10,
            "user": dict(serializers.user_payload(self.backend.bot_user)),
            "guilds": [{"id": str(guild), "unavailable": True} for guild in self.backend.guilds],
            "session_id": session.key,
            "resume_gateway_url": GATEWAY,
            "shard": shard,
            "application": {"id": str(self.backend.application_id), "flags": READS_CONTENT},
        })
        for guild in self.backend.guilds.values():
            session.tell("GUILD_CREATE", copy.deepcopy(dict(serializers.guild_create_payload(self.backend, guild))))


WORLD = World()


async def write(socket, frame):
    if not socket.closed:
        await socket.send_str(json.dumps(frame))


async def gateway(request):
    socket = web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    await write(socket, {"op": HELLO, "d": {"heartbeat_interval": HEARTBEAT}, "t": None, "s": None})
    session = None
    async for message in socket:
        if message.type != WSMsgType.TEXT:
            continue
        frame = json.loads(message.data)
        op, data = frame["op"], frame.get("d")
        if op == HEARTBEAT_OP:
            await write(socket, {"op": HEARD})
        elif op == IDENTIFY and data["token"].removeprefix("Bot ") != TOKEN:
            await socket.close(code=4004, message=b"Authentication failed.")
        elif op == IDENTIFY:
            session = WORLD.begin(data)
            session.socket = socket
            WORLD.welcome(session, data.get("shard", [0, 1]))
        elif op == RESUME:
            session = WORLD.sessions.get(data["session_id"])
            if session is None:
                await write(socket, {"op": INVALID, "d": False})
                continue
            WORLD.resumed += 1
            for told in session.told[data["seq"]:]:
                await write(socket, told)
            session.socket = socket
            session.tell("RESUMED", {})
    if session is not None and session.socket is socket:
        session.socket = None
    return socket


def answer(value, status=200):
    headers = {"Content-Type": "application/json"}
    return web.Response(body=json.dumps(value).encode(), status=status, headers=headers)


async def rest(request):
    path = "/" + request.match_info["path"]
    has_own_token = path.startswith(("/interactions/", "/webhooks/"))
    if not has_own_token and request.headers.get("Authorization") != f"Bot {TOKEN}":
        return answer({"message": "401: Unauthorized", "code": 0}, 401)
    if path in ("/gateway", "/gateway/bot"):
        limit = {"total": 1000, "remaining": 999, "reset_after": 1, "max_concurrency": 1}
        return answer({"url": GATEWAY, "shards": 1, "session_start_limit": limit})
    body, files = None, []
    if request.content_type.startswith("multipart/"):
        async for part in await request.multipart():
            content = bytes(await part.read())
            if part.name == "payload_json":
                body = json.loads(content)
            else:
                files.append(types.SimpleNamespace(fp=io.BytesIO(content), filename=part.filename, description=None))
    elif request.can_read_body:
        body = await request.json()
    try:
        return route(request, path, body, files)
    except BackendError as refusal:
        return answer(refusal.to_json(), refusal.status)


def route(request, path, body, files):
    if path == "/applications/@me":
        application = router.dispatch(WORLD.backend, "GET", "/oauth2/applications/@me")
        return answer({**application, "flags": READS_CONTENT})
    if path.endswith("/typing"):
        WORLD.signs.append(path)
    key = None
    if isinstance(body, dict) and request.method == "POST" and body.get("enforce_nonce"):
        # The package has no keys; without them a repeat would be shown twice.
        key = (path, body["nonce"])
        if key in WORLD.nonces:
            return answer(WORLD.nonces[key])
        body = {name: value for name, value in body.items() if name not in ("nonce", "enforce_nonce")}
    reason = request.headers.get("X-Audit-Log-Reason")
    made = router.dispatch(
        WORLD.backend, request.method, path, json=body, params=dict(request.query), files=files, reason=reason
    )
    if key:
        WORLD.nonces[key] = made
    return web.Response(status=204) if made is None else answer(made)


async def download(request):
    content = WORLD.backend.cdn.get(HTTP + request.path)
    return web.Response(status=404) if content is None else web.Response(body=content)


def shown(channel):
    messages = WORLD.backend.messages.get(channel, {}).values()
    return [
        {
            **serializers.message_payload(WORLD.backend, message),
            "edits": WORLD.edits.get(str(message.id), 0),
        }
        for message in messages
    ]


async def person(request):
    asked = await request.json() if request.can_read_body else {}
    world, backend = WORLD, WORLD.backend
    match request.match_info["deed"]:
        case "state":
            return answer({
                "channel": str(world.channel.id),
                "guild": str(world.guild.id),
                "bot": str(backend.bot_user.id),
                "alice": str(world.alice.id),
                "dm": str(backend.get_dm_channel(world.alice.id).id),
                "connected": sum(session.socket is not None for session in world.sessions.values()),
                "sessions": len(world.sessions),
                "resumed": world.resumed,
                "signs": len(world.signs),
                "commands": [command["name"] for command in router.dispatch(
                    backend, "GET", f"/applications/{backend.application_id}/commands")],
            })
        case "read":
            return answer(shown(int(asked["channel"])))
        case "say":
            attachments = None
            if "file" in asked:
                name, content = asked["file"]["name"], asked["file"]["text"].encode()
                file = backend.cdn.store_attachment(backend.snowflake(), int(asked["channel"]), name, content, None)
                attachments = [file]
            said = backend.create_message(
                int(asked["channel"]), world.alice.id, asked["content"], attachments=attachments
            )
            return answer({"id": str(said.id)})
        case "press":
            message = next(one for one in shown(int(asked["channel"])) if one["id"] == asked["message"])
            data = {"custom_id": asked["custom_id"], "component_type": 2}
            return answer(interact(3, asked["channel"], data, message))
        case "command":
            data = {"id": "1", "name": asked["name"], "type": 1, "options": asked.get("options", [])}
            return answer(interact(2, asked["channel"], data))
        case "interaction":
            record = backend.interactions[int(asked["id"])]
            return answer({"responded": record.responded, "message": str(record.message_id)})
        case "cut":
            for session in world.sessions.values():
                if session.socket is not None:
                    await session.socket.close(code=4000)
            return answer({})
    return answer({}, 404)


def interact(kind, channel, data, message=None):
    place = WORLD.backend.get_channel(int(channel))
    record, payload = interactions.base_payload(
        WORLD.backend, type=kind, channel_id=place.id, guild_id=place.guild_id, user_id=WORLD.alice.id, data=data
    )
    if message is not None:
        record.source_message_id = int(message["id"])
        payload["message"] = message
    WORLD.happened("INTERACTION_CREATE", payload)
    return {"id": str(record.id)}


app = web.Application(client_max_size=64 * 1024 * 1024)
app.router.add_get("/gateway", gateway)
app.router.add_get("/gateway/", gateway)
app.router.add_route("*", "/api/v10/{path:.*}", rest)
app.router.add_get("/cdn/{path:.*}", download)
app.router.add_route("*", "/person/{deed}", person)
web.run_app(app, host="127.0.0.1", port=PORT, print=None)
