/**
 * One memory server as a child process: found, started in a folder, spoken to through the MCP SDK, and ended with
 * everything that it started. Knows nothing of agents or Cordis.
 */
import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join, resolve, sep } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js'
import { ResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'

const WINDOWS = process.platform === 'win32'
const CREDENTIAL_NAME = /^DSH_|TOKEN|KEY|SECRET|PASSW|PASSPHRASE|PASS$|CREDENTIAL|PRIVATE|AUTH(?!OR)|COOKIE|(^|_)PAT$/
const CREDENTIAL_URL = /[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/\s@]*:[^/\s@]+@/
const MOST_PAGES = 100
export const CLIENT = { name: 'dsh-engram-session', version: '1.0.0' }

/** The environment of a child: the host's, without what looks like a credential. */
export function childEnvironment(env) {
  return Object.fromEntries(Object.entries(env).filter(([name, value]) =>
    value !== undefined && !CREDENTIAL_NAME.test(name.toUpperCase()) && !CREDENTIAL_URL.test(value)))
}

/**
 * The server's program: the configured one, else the first `engram` on PATH, in ~/.local/bin, /usr/local/bin,
 * /opt/homebrew/bin. Returns [absolute path or undefined, warning or undefined].
 */
export function findProgram(configured, env) {
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean).map(folder => resolve(folder))
  let warning
  if (configured) {
    const bare = !isAbsolute(configured) && !configured.includes(sep)
    for (const path of bare ? folders.map(folder => join(folder, configured)) : [resolve(configured)]) {
      if (isProgram(path)) return [path, undefined]
    }
    warning = `${configured} is not a program; looking for engram instead`
  }
  if (!WINDOWS) folders.push(join(homedir(), '.local', 'bin'), '/usr/local/bin', '/opt/homebrew/bin')
  for (const folder of folders) {
    for (const name of WINDOWS ? ['engram.exe', 'engram.cmd'] : ['engram']) {
      if (isProgram(join(folder, name))) return [join(folder, name), warning]
    }
  }
  return [undefined, `${warning ? `${warning}; ` : ''}no engram program was found, so agents get no memory tools`]
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile() // a folder of that name passes the first test
  } catch {
    return false
  }
}

/** A connected server. `ended` resolves when it is gone, whoever ended it. */
export class Child {
  /** Start and shake hands; rejects with the reason, leaving no process. */
  static async open(program, args, cwd, env, { timeoutMs, graceMs }) {
    const transport = new GroupTransport(program, args, cwd, env, graceMs)
    const client = new Client(CLIENT, { capabilities: {} })
    try {
      await client.connect(transport, { timeout: timeoutMs })
    } catch (error) {
      await transport.close()
      throw error
    }
    return new Child(client, transport, timeoutMs)
  }

  constructor(client, transport, timeoutMs) {
    this.client = client
    this.transport = transport
    this.timeoutMs = timeoutMs
    this.watchers = new Set()
    this.over = false
    this.ended = transport.ended.then(() => { this.over = true })
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.watchers.forEach(watcher => watcher()))
  }

  /** All pages of the tool list; rejects for a cursor that comes back or after 100 pages. */
  async list() {
    const tools = []
    const seen = new Set()
    let params = {}
    for (let page = 0; page < MOST_PAGES; page++) {
      const answer = await this.client.request({ method: 'tools/list', params }, ResultSchema, { timeout: this.timeoutMs })
      if (!Array.isArray(answer.tools)) throw new Error('the answer to tools/list has no list of tools')
      tools.push(...answer.tools)
      const cursor = answer.nextCursor
      if (cursor === undefined || cursor === null) return tools // an empty string is a cursor like any other
      if (typeof cursor !== 'string' || seen.has(cursor)) throw new Error("the tool list never ends: a page's cursor came a second time")
      seen.add(cursor)
      params = { cursor }
    }
    throw new Error(`the tool list has more than ${MOST_PAGES} pages`)
  }

  /** Call a tool by its raw name. */
  call(raw, args, signal, timeout) {
    return this.client.request({ method: 'tools/call', params: { name: raw, arguments: args } }, ResultSchema, { signal, timeout })
  }

  /** End it: its input closes, then SIGTERM, then SIGKILL, each after the grace; resolves when it is gone. */
  async close() {
    await this.client.close().catch(() => {})
    await this.transport.close()
  }
}

/** The SDK's stdio transport, but for its own process group: what a wrapper started ends with it. */
class GroupTransport {
  constructor(program, args, cwd, env, graceMs) {
    const script = WINDOWS && /\.(cmd|bat)$/i.test(program)
    this.command = script ? ['cmd', ['/d', '/s', '/c', program, ...args]] : [program, args]
    this.options = { cwd, env, stdio: ['pipe', 'pipe', 'inherit'], detached: !WINDOWS, windowsHide: true }
    this.graceMs = graceMs
    this.ended = new Promise(resolve => { this.end = resolve })
    this.exited = false
  }

  start() {
    return new Promise((started, failed) => {
      const child = this.child = spawn(...this.command, this.options)
      const buffer = new ReadBuffer()
      child.once('spawn', started)
      child.once('error', error => {
        failed(error)
        this.gone()
      })
      child.once('close', () => this.gone())
      child.stdin.on('error', () => {}) // the reader went away: `close` tells the rest
      child.stdout.on('error', () => {})
      child.stdout.on('data', data => {
        buffer.append(data)
        for (;;) {
          let message
          try {
            message = buffer.readMessage()
          } catch (error) {
            this.onerror?.(error) // a line that is no message: the next one may be
            continue
          }
          if (message === null) return
          this.onmessage?.(message)
        }
      })
    })
  }

  send(message) {
    return new Promise((sent, failed) => {
      const unsent = () => failed(Object.assign(new Error('the memory server is not running'), { unsent: true }))
      if (!this.child?.stdin.writable) return unsent()
      this.child.stdin.write(serializeMessage(message), error => error ? unsent() : sent())
    })
  }

  gone() {
    if (this.exited) return
    this.exited = true
    this.signal('SIGKILL') // what a wrapper left behind
    this.end()
    this.onclose?.()
  }

  async close() {
    if (!this.child?.pid) return
    this.closing ??= (async () => {
      this.child.stdin.end()
      for (const signal of ['SIGTERM', 'SIGKILL']) {
        if (await this.within(this.graceMs)) return
        this.signal(signal)
      }
      if (!await this.within(this.graceMs)) {
        this.child.stdout.destroy() // a stray process holds the pipe: the server itself is dead
        this.gone()
      }
    })()
    await this.closing
  }

  signal(name) {
    try {
      if (WINDOWS) this.child.kill(name)
      else process.kill(-this.child.pid, name)
    } catch { /* nobody is left */ }
  }

  async within(ms) {
    let timer
    const late = new Promise(resolve => { timer = setTimeout(() => resolve(false), ms) })
    const done = await Promise.race([this.ended.then(() => true), late])
    clearTimeout(timer)
    return done
  }
}
