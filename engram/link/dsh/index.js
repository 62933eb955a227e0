/**
 * Engram's session memory for the DeepSeek Harness: each agent gets an `engram mcp` of its own, in its own folder,
 * and that agent alone has its tools. One `Seat` per agent brings the tools up and keeps them up; disposing an agent or the
 * plugin withdraws the tools first and then ends the child, and is awaited.
 */
import { statSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import Schema from '@deepseek-ai/schemastery'
import { Child, childEnvironment, findProgram } from './child.js'
import { SECTION_NAME, SECTION_ORDER, definitions, protocolText, render } from './protocol.js'

export const name = 'dsh-engram-session'
export const inject = ['agents', 'systemPrompt']

export const Config = Schema.object({
  serverName: Schema.string().pattern(/^[A-Za-z0-9_-]{1,32}$/).default('engram')
    .description('The server part of public tool names.'),
  binary: Schema.string().default('').description('Path or name of the program; empty looks for engram on PATH and in the usual folders.'),
  args: Schema.array(Schema.string()).default(['mcp']).description('Arguments of the server.'),
  toolCallTimeoutMs: Schema.number().min(1).default(60000).description('How long a call may take.'),
  connectTimeoutMs: Schema.number().min(1).default(30000).description('How long the handshake and each page of the tool list may take.'),
  pool: Schema.number().min(0).default(0).description('Share one child per folder, at most this many; 0 gives each agent its own.'),
  idleMs: Schema.number().min(0).default(600000).description('When a shared child without agents ends.'),
  graceMs: Schema.number().min(1).default(2000).description('How long a child has to end before it is killed.'),
  restart: Schema.object({
    initialDelayMs: Schema.number().min(0).default(500),
    maxDelayMs: Schema.number().min(0).default(30000),
    maxAttempts: Schema.number().min(0).default(10),
    freshAfterMs: Schema.number().min(0).default(30000),
  }).description('How a child that died is started again: the pause doubles up to the most; the count begins anew after that uptime.'),
})

const OUTPUT = {
  type: 'object',
  properties: { content: { type: 'array', items: { type: 'object' } }, structuredContent: { type: 'object' } },
  required: ['content'],
  additionalProperties: false,
}

export async function apply(ctx, config) {
  const [program, warning] = findProgram(config.binary, process.env)
  if (warning) ctx.logger.warn('engram: %s', warning)
  if (!program) return
  const host = new Host(ctx, config, program)
  ctx.effect(() => () => host.close(), 'engram session host')
  ctx.systemPrompt.section({ name: SECTION_NAME, order: SECTION_ORDER, text: assembly => host.protocolFor(assembly?.scope ?? assembly?.agent) })
  ctx.on('agent/created', ({ agent }) => { host.start(agent) })
  ctx.on('agent/disposed', ({ agent }) => { host.stop(agent) })
  await host.warm() // so that an agent's first request already has the tools
  for (const agent of ctx.agents.list()) host.start(agent)
}

class Host {
  constructor(ctx, config, program) {
    this.log = ctx.logger
    this.config = config
    this.seats = new Map()
    this.leaving = new Set()
    this.closed = false
    this.known = undefined // the tools of the last server seen, for agents whose own is not there yet
    this.pool = new Pool(cwd => Child.open(program, config.args, cwd, childEnvironment(process.env),
      { timeoutMs: config.connectTimeoutMs, graceMs: config.graceMs }), config)
  }

  /** Read the tool list once, in a folder of nobody's; a failure is told by the agents' own starts. */
  async warm() {
    try {
      const child = await this.pool.open(tmpdir())
      try {
        this.known = await child.list()
      } finally {
        await child.close()
      }
    } catch (error) {
      this.log.debug('engram: the tool list could not be read ahead: %s', error.message)
    }
  }

  start(agent) {
    if (this.closed || this.seats.has(agent.id)) return
    const cwd = agent.session?.header?.cwd
    if (typeof cwd !== 'string' || cwd.trim() === '') {
      this.log.debug('engram: agent %s has no working folder, so no memory tools', agent.id)
      return
    }
    const before = [...this.leaving].filter(seat => seat.agent.id === agent.id)
    const seat = new Seat(this, agent, cwd)
    this.seats.set(agent.id, seat)
    seat.run(before)
  }

  async stop(agent) {
    const seat = this.seats.get(agent.id)
    if (!seat || seat.agent !== agent) return
    this.seats.delete(agent.id)
    await this.leave(seat)
  }

  async leave(seat) {
    this.leaving.add(seat)
    await seat.stop()
    this.leaving.delete(seat)
  }

  async close() {
    this.closed = true
    const seats = [...this.seats.values()]
    this.seats.clear()
    await Promise.all([...seats.map(seat => this.leave(seat)), ...[...this.leaving].map(seat => seat.stop())])
    await this.pool.close()
  }

  protocolFor(scope) {
    for (const seat of this.seats.values()) {
      if (seat.agent === scope || (scope === undefined && seat.tools.size > 0)) return protocolText(seat.publicNames())
    }
    return ''
  }
}

class Seat {
  constructor(host, agent, cwd) {
    this.host = host
    this.agent = agent
    this.cwd = cwd
    this.child = undefined
    this.tools = new Map() // public name → {definition, dispose}
    this.stopped = new AbortController()
    this.changed = signalled()
    this.onChanged = () => this.changed.fire()
    this.aborted = aborted(this.stopped.signal)
    this.up = signalled()
    this.over = false
  }

  publicNames() {
    return new Map([...this.tools.values()].map(({ definition }) => [definition.raw, definition.name]))
  }

  async run(before) {
    this.done = this.keep(before)
    await this.done
  }

  async keep(before) {
    const { restart } = this.host.config
    let tries = 0
    let since
    try {
      await Promise.all(before.map(seat => seat.stop()))
      if (!this.stopped.signal.aborted && this.host.known) this.generation(this.host.known)
      await this.connect()
      this.host.log.info('engram: agent %s has %d memory tools', this.agent.id, this.tools.size)
      since = Date.now()
      for (;;) {
        await Promise.race([this.child.ended, this.changed.promise, this.aborted])
        if (this.stopped.signal.aborted) return
        if (!this.child.over) {
          this.changed = signalled()
          await this.relist()
          continue
        }
        this.up = signalled()
        if (Date.now() - since >= restart.freshAfterMs) tries = 0
        let reason = 'the memory server ended'
        for (;;) {
          await this.drop()
          if (tries >= restart.maxAttempts) throw new Error(`${reason}; given up after ${tries} tries`)
          const pause = Math.min(restart.initialDelayMs * 2 ** tries, restart.maxDelayMs)
          tries += 1
          this.host.log.warn('engram: agent %s: %s; try %d of %d in %d ms', this.agent.id, reason, tries, restart.maxAttempts, pause)
          await sleep(pause, this.stopped.signal)
          if (this.stopped.signal.aborted) return
          try {
            await this.connect()
            break
          } catch (error) {
            reason = error.message
          }
        }
        since = Date.now()
      }
    } catch (error) {
      if (!this.stopped.signal.aborted) {
        this.host.log.warn('engram: agent %s gets no memory tools: %s', this.agent.id, error.message)
        if (this.host.seats.get(this.agent.id) === this) this.host.seats.delete(this.agent.id)
      }
    } finally {
      this.over = true
      this.up.fire()
      this.withdraw()
      await this.drop()
    }
  }

  async connect() {
    if (!isFolder(this.cwd)) throw new Error(`there is no folder ${this.cwd}`)
    const child = await this.host.pool.take(this.cwd)
    this.child = child
    if (this.stopped.signal.aborted) return
    child.watchers.add(this.onChanged)
    const tools = await child.list()
    if (this.stopped.signal.aborted) return // nothing is registered late
    this.host.known = tools
    this.generation(tools)
    this.up.fire()
  }

  async relist() {
    try {
      const tools = await this.child.list()
      if (!this.stopped.signal.aborted) this.generation(tools)
    } catch (error) {
      this.host.log.warn('engram: agent %s: the changed tool list could not be used: %s', this.agent.id, error.message)
      if (this.tools.size === 0) throw error
    }
  }

  /** Make a list the agent's tools: all of them, or on a failure none. */
  generation(tools) {
    const { made, skipped } = definitions(this.host.config.serverName, tools)
    for (const [raw, reason] of skipped) this.host.log.debug('engram: agent %s: tool %s left out: %s', this.agent.id, String(raw), reason)
    const now = [...this.tools.values()].map(({ definition }) => definition)
    if (JSON.stringify(now) === JSON.stringify(made)) return
    this.withdraw()
    try {
      for (const definition of made) {
        const dispose = this.agent.ctx.tools.register({
          name: definition.name,
          description: definition.description,
          parameters: definition.parameters,
          output: { schema: OUTPUT, render: (_, value) => [{ type: 'text', text: render(definition.raw, value) }] },
          execute: (args, exec) => this.call(definition.raw, args, exec?.signal),
        })
        this.tools.set(definition.name, { definition, dispose })
      }
    } catch (error) {
      this.withdraw()
      throw error
    }
  }

  withdraw() {
    const tools = [...this.tools.values()].reverse()
    this.tools.clear()
    for (const { definition, dispose } of tools) {
      try {
        dispose()
      } catch (error) {
        this.host.log.warn('engram: agent %s: withdrawing %s failed: %s', this.agent.id, definition.name, error.message)
      }
    }
  }

  /** Call a tool; while the server is started again the call waits for it, within its time. */
  async call(raw, args, signal) {
    const end = Date.now() + this.host.config.toolCallTimeoutMs
    const plain = args !== null && typeof args === 'object' && !Array.isArray(args) ? args : {}
    for (;;) {
      const child = await this.running(end, signal)
      let result
      try {
        result = await child.call(raw, plain, signal, Math.max(1, end - Date.now()))
      } catch (error) {
        if (!error.unsent || Date.now() >= end) throw error
        await Promise.race([child.ended, sleep(end - Date.now(), signal)]) // it died unnoticed: nothing was sent, so ask the next one
        continue
      }
      const content = Array.isArray(result.content) ? result.content.filter(block => block !== null && typeof block === 'object') : []
      const value = { content, ...(result.structuredContent === undefined ? {} : { structuredContent: result.structuredContent }) }
      if (result.isError) throw new Error(render(raw, value))
      return value
    }
  }

  async running(end, signal) {
    signal?.throwIfAborted()
    if (!this.child || this.child.over) {
      if (this.up.fired && !this.over) this.up = signalled()
      await Promise.race([this.up.promise, sleep(end - Date.now(), signal)])
      signal?.throwIfAborted()
    }
    if (this.over || !this.child || this.child.over) throw new Error('the memory server is not running')
    return this.child
  }

  async drop() {
    const child = this.child
    this.child = undefined
    if (!child) return
    child.watchers.delete(this.onChanged)
    await this.host.pool.release(this.cwd, child)
  }

  async stop() {
    this.stopped.abort()
    this.withdraw() // at once: the agent is gone whatever the child does
    await this.done
  }
}

/** Children by folder: one for each seat, or shared ones when the config asks for it. */
class Pool {
  constructor(open, config) {
    this.open = open
    this.config = config
    this.rows = new Map()
  }

  async take(cwd) {
    if (!this.config.pool) return this.open(cwd)
    const key = await realpath(cwd)
    let row = this.rows.get(key)
    if (!row || row.child?.over) {
      await this.makeRoom()
      row = { users: 0, opening: this.open(cwd) }
      row.opening.then(child => { row.child = child }, () => { if (this.rows.get(key) === row) this.rows.delete(key) })
      this.rows.set(key, row)
    }
    row.users += 1
    clearTimeout(row.timer)
    return row.opening
  }

  async release(cwd, child) {
    const [key, row] = [...this.rows].find(([, one]) => one.child === child) ?? []
    if (!row) return child.close()
    row.users -= 1
    if (child.over) {
      this.rows.delete(key)
      await child.close()
    } else if (row.users <= 0) {
      row.timer = setTimeout(() => this.retire(key, row), this.config.idleMs)
    }
  }

  async makeRoom() {
    if (this.rows.size < this.config.pool) return
    for (const [key, row] of this.rows) {
      if (row.users <= 0) return this.retire(key, row)
    }
    throw new Error(`all ${this.config.pool} shared memory servers are in use`)
  }

  async retire(key, row) {
    if (this.rows.get(key) === row) this.rows.delete(key)
    clearTimeout(row.timer)
    await row.opening.then(child => child.close(), () => {})
  }

  async close() {
    await Promise.all([...this.rows].map(([key, row]) => this.retire(key, row)))
  }
}

function signalled() {
  const made = { fired: false }
  made.promise = new Promise(resolve => {
    made.fire = () => {
      made.fired = true
      resolve()
    }
  })
  return made
}

function aborted(signal) {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', resolve, { once: true })
  })
}

function sleep(ms, signal) {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, Math.max(0, ms))
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    }, { once: true })
  })
}

function isFolder(path) {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}
