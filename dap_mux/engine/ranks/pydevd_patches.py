"""What every rank learns when it is attached, as text: it is run there, by `agent.CURE`.

A rank that has learned it keeps it, so that the next session need not have it compiled there again
(0.8 ms a rank, measured). Private parts of pydevd, so whatever has changed there is left as it was.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from dap_mux.injected import (
    adapter_keeper,
    adapter_program,
    conditions,
    farewell,
    output_redirect,
    source_of,
    tracing,
)

# The name of the file that they are compiled as. pydevd takes files whose names begin like this for
# its own: a step into `print` that met our patch of its writer ended there, in a frame of ours.
FILE_NAME: Final = "<builtin dap_mux>"

# A step in few messages, for each costs debugpy and its adapter 0.5 ms of CPU (measured): a stop
# tells its stack, as `stackTrace` would, and the text of the line; and that a rank runs on which
# was told to step is no news (DAP asks for no such event). Whatever has changed in pydevd leaves
# the events as they were, and then ranks are asked. It lasts until the next `disconnect`, ours or
# the adapter's when a link breaks: whoever debugs the rank next gets debugpy's own events.
BRIEF: Final = """\
def be_brief(debugger):
    import linecache
    part = lambda name: __import__('_pydevd_bundle.' + name, fromlist=['x'])
    factory = debugger.cmd_factory
    find, nothing = part('pydevd_comm').pydevd_find_thread_by_id, part('pydevd_net_command')
    stop, resume = ('make_thread_%s_single_notification' % what for what in ('suspend', 'resume'))
    bare_stop, bare_resume = getattr(type(factory), stop), getattr(type(factory), resume)

    def stack_of(py_db, thread_id):
        found = factory.make_get_thread_stack_message(py_db, 0, thread_id, None, None, True)
        frames = found.as_dict['body']['stackFrames']
        told, line = {'stackFrames': frames}, frames[0]['line']
        frame = next(iter(py_db.suspended_frames_manager.get_frames_list(thread_id)))
        if (frame.f_code.co_name, frame.f_lineno) == (frames[0]['name'], line):
            text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
            told['lineText'] = text.strip()
        return told

    def with_stack(py_db, thread_id, *rest):
        command = bare_stop(factory, py_db, thread_id, *rest)
        try:
            event = command.as_dict
            told = {**event, 'body': {**event['body'], **stack_of(py_db, thread_id)}}
            return type(command)(command.id, 0, told, is_json=True)
        except Exception:
            return command

    def unless_stepping(thread_id):
        try:
            if find(thread_id).additional_info.pydev_step_cmd != -1:
                return nothing.NULL_NET_COMMAND
        except Exception:
            pass
        return bare_resume(factory, thread_id)

    api = part('pydevd_api').PyDevdAPI
    disconnect = api.request_disconnect

    def undone(self, *rest, **named):
        vars(factory).pop(stop, None), vars(factory).pop(resume, None)
        api.request_disconnect = disconnect
        return disconnect(self, *rest, **named)

    setattr(factory, stop, with_stack)
    setattr(factory, resume, unless_stepping)
    api.request_disconnect = undone

"""

# Against three ways to lose a rank (measured); it lasts as long as the process. A program in
# `wait_for_client` looks every 20 ms whether a debugger is there that has configured it, and waits
# on where that one has gone by then: `configurationDone` itself ends the wait, as our in-rank agent
# has seen to. A thread that has decided to stop, at a breakpoint whose condition takes its time,
# say, stops also after the `disconnect` that was to let everything run, with nobody there to let it
# go on: from then to the next `initialize` it does at once. And K1: a stop is told twice where a
# pause has crossed it, so nobody knows for certain that a rank stands still. `continue` is answered
# as soon as no thread is held, which may be now.
RUN_ON: Final = """\
def end_the_wait_once_configured(debugger):
    api = __import__('sys').modules['debugpy.server.api']
    configured = debugger.on_configuration_done

    def and_end_the_wait():
        configured()
        try:
            api.wait_for_client.cancel()
        except RuntimeError:
            pass

    if 'on_configuration_done' not in vars(debugger):
        debugger.on_configuration_done = and_end_the_wait

def stop_for_nobody(debugger):
    api = __import__('_pydevd_bundle.pydevd_api', fromlist=['x']).PyDevdAPI()
    wait, met, left = debugger.do_wait_suspend, debugger.on_initialize, debugger.on_disconnect
    alone = []

    def meet():
        alone.clear()
        met()

    def leave():
        alone.append(True)
        left()

    def wait_unless_alone(*rest, **named):
        if alone:
            api.request_resume_thread('*')
        return wait(*rest, **named)

    if 'do_wait_suspend' not in vars(debugger):
        debugger.on_initialize, debugger.on_disconnect = meet, leave
        debugger.do_wait_suspend = wait_unless_alone

def answer_every_continue(debugger):
    kind = type(debugger.threads_suspended_single_notification)
    add, resumed = kind.add_on_resumed_callback, kind.on_thread_resume

    def add_or_call(self, callback):
        with self._lock:
            if self._suspended_thread_id_to_thread:
                return add(self, callback)
        callback()

    def resumed_and_call(self, *rest):
        resumed(self, *rest)
        due = []
        with self._lock, self._callbacks_lock:
            if not self._suspended_thread_id_to_thread:
                due, self._callbacks = self._callbacks, due
        for callback in due:
            callback()

    if add.__name__ == 'add_on_resumed_callback':
        kind.add_on_resumed_callback, kind.on_thread_resume = add_or_call, resumed_and_call

"""

# One more (measured): debugpy's adapter ends when a rank answers an `evaluate` of somebody who has
# hung up, and then nobody can attach any more. So who has left is not answered.
FORGET: Final = """\
owed = {}

def answer_nobody_who_left(debugger):
    api = __import__('_pydevd_bundle.pydevd_api', fromlist=['x']).PyDevdAPI
    asked, left = api.request_exec_or_evaluate_json, debugger.on_disconnect
    add, nobody = debugger.writer.add_command, -1

    def ask_and_owe(self, py_db, request, thread_id):
        owed[request.seq] = request
        return asked(self, py_db, request, thread_id)

    def leave_and_forget():
        for request in list(owed.values()):
            request.seq = nobody
        owed.clear()
        left()

    def add_unless_forgotten(command):
        seq = (command.as_dict or {}).get('request_seq')
        owed.pop(seq, None)
        return None if seq == nobody else add(command)

    if asked.__name__ == 'request_exec_or_evaluate_json':
        api.request_exec_or_evaluate_json = ask_and_owe
        debugger.on_disconnect = leave_and_forget
    if 'add_command' not in vars(debugger.writer):
        debugger.writer.add_command = add_unless_forgotten

"""

# Quicker by a tenth together (measured: p50 of an `evaluate`): a message goes out in one write, for
# the adapter is woken by each; and a watch is compiled when it is first evaluated, not at every
# stop. Nothing else changes, so whoever debugs the rank next may have it too.
QUICK: Final = """\
def be_quick(debugger):
    import functools
    part = lambda name: __import__('_pydevd_bundle.' + name, fromlist=['x'])
    net, texts = part('pydevd_net_command'), part('pydevd_vars')
    message, compiled = net.NetCommand, texts.compile_as_eval
    send, framed = message.send, (net.HTTP_PROTOCOL, net.HTTP_JSON_PROTOCOL)

    def send_at_once(self, sock):
        body = self._as_bytes
        if self._after_send or net.get_protocol() not in framed:
            return send(self, sock)
        sock.sendall(b'Content-Length: %d\\r\\n\\r\\n%b' % (len(body), body))

    if send.__name__ == 'send' and {'_as_bytes', '_after_send'} <= set(send.__code__.co_names):
        message.send = send_at_once
    if not hasattr(compiled, 'cache_info'):
        texts.compile_as_eval = functools.lru_cache(128)(compiled)

"""

# Modules of ours, each compiled in a rank once.
MODULES: Final = f"""\
modules = {{}}

def module(name, source):
    if name not in modules:
        own = {{'__name__': 'dap_mux_' + name}}
        exec(compile(source, {FILE_NAME!r}, 'exec'), own)
        modules[name] = own
    return modules[name]

"""

# Without it an expression of a debug console may crash a rank that prints at that moment.
STREAMS: Final = f"""\
def keep_streams(debugger):
    module('output_redirect', {source_of(output_redirect)!r})['keep_redirectors']()

"""

# So that the end of a program can be told from the end of its debugger.
FAREWELL: Final = f"""\
def tell_the_end(debugger):
    module('farewell', {source_of(farewell)!r})['announce_end'](debugger)

"""

# debugpy's adapter does not survive every broken connection, and with it goes the rank's port.
ADAPTER: Final = f"""\
def keep_an_adapter(debugger):
    keeper = module('adapter_keeper', {source_of(adapter_keeper)!r})
    keeper['keep_adapter'](debugger, {source_of(adapter_program)!r})

"""

# Without it a rank stays as slow as its debugger makes it when that has left. It wraps what others
# above replace, so it comes last.
TRACING: Final = f"""\
def trace_only_while_attached(debugger):
    module('tracing', {source_of(tracing)!r})['follow_clients'](debugger)

"""

# A condition in a line that runs often takes a fifth of the time so.
CONDITIONS: Final = f"""\
def compile_conditions_once(debugger):
    module('conditions', {source_of(conditions)!r})['compile_once'](debugger)

"""

# Which process this is, for a session on the same machine: where the rank's adapter dies before it
# can say that the program has ended, nobody else tells. Its boot, its namespace, its pid and when
# it started; "" where the system does not say.
WHO: Final = """\
def who():
    import os
    try:
        with open('/proc/sys/kernel/random/boot_id') as boot, open('/proc/self/stat') as stat:
            start = stat.read().rpartition(')')[2].split()[19]
            space = os.readlink('/proc/self/ns/pid')
            return ' '.join((boot.read().strip(), space, str(os.getpid()), start))
    except Exception:
        return ''
"""

# Answers whether `children`, an expression of `agent`, could be evaluated, and `WHO`.
LESSONS: Final = f"""\
{BRIEF}
{RUN_ON}
{FORGET}
{QUICK}
{MODULES}
{STREAMS}
{FAREWELL}
{ADAPTER}
{TRACING}
{CONDITIONS}
{WHO}
def learn(debugger, children):
    def see_to_children(debugger):
        eval(children, {{}})

    def done(change):
        try:
            change(debugger)
            return True
        except Exception:
            return False

    kept = done(see_to_children)
    run_on = (end_the_wait_once_configured, stop_for_nobody, answer_every_continue)
    ours = (be_quick, keep_streams, tell_the_end, keep_an_adapter, compile_conditions_once)
    for change in (be_brief, *run_on, answer_nobody_who_left, *ours, trace_only_while_attached):
        done(change)
    return '%s %s' % (kept, who())
"""

# Where pydevd's debugger keeps them: another version of us teaches its own.
KEPT_AS: Final = f"dap_mux_{crc32(LESSONS.encode()):08x}"
