// Runs the bundle with the real Cordis and the harness's own services; `node dsh_bundle.mjs PROGRAM ROOT MODE`.
// Prints one JSON object of what was seen; the Python test beside it says what must be.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Context } from '@deepseek-ai/cordis'
import AgentRegistry from '@deepseek-ai/dsh-agent'
import { createScope } from '@deepseek-ai/dsh-scope'
import SystemPrompt, { renderPrompt } from '@deepseek-ai/dsh-system-prompt'
import ToolRuntime from '@deepseek-ai/dsh-tools'
import * as bundle from 'dsh-engram-session'

const [program, root, mode] = process.argv.slice(2)
const seen = { logs: [] }
const extra = JSON.parse(process.env.BUNDLE_CONFIG ?? '{}')
const ctx = new Context()
const children = () => readdirSync('/proc').filter(pid => /^\d+$/.test(pid)).filter(pid => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] !== 'Z' && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`BUNDLE_MARK=${process.env.BUNDLE_MARK}`) && pid !== String(process.pid)
  } catch {
    return false
  }
})
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
async function until(test, ms = 15000) {
  for (let waited = 0; waited < ms; waited += 20) {
    if (await test()) return true
    await pause(20)
  }
  return false
}

await ctx.plugin(SystemPrompt, {})
await ctx.plugin(AgentRegistry)
await ctx.plugin(ToolRuntime, {})

let hostCtx
await ctx.plugin(Object.assign(inner => { hostCtx = inner }, { inject: ['agents', 'tools', 'systemPrompt'] }))

/** A live agent with a scope of its own, as the harness's loop makes one. */
function agent(id, cwd) {
  const made = { id, options: {}, session: { id, header: cwd === undefined ? {} : { cwd } }, status: 'idle' }
  const scope = createScope(hostCtx, made)
  made.ctx = scope.ctx
  made.remove = hostCtx.agents.register(made)
  made.dispose = async () => {
    await made.remove()
    await scope.dispose()
  }
  return made
}
const toolNames = async one => (await hostCtx.systemPrompt.assemble({ scope: one, agent: one })).tools.map(tool => tool.name).sort()
const prompt = async one => renderPrompt(await hostCtx.systemPrompt.assemble({ scope: one, agent: one }))
let calls = 0
const call = (one, name, args) => hostCtx.tools.execute(
  { callId: `c${++calls}`, name, arguments: args, agent: one, signal: new AbortController().signal }, { scope: one })
const content = result => (result.content ?? []).map(block => block.text).join('\n')

const config = { binary: program, graceMs: 300, connectTimeoutMs: 10000, restart: { initialDelayMs: 20, maxDelayMs: 100, maxAttempts: 3 }, ...extra }
const folders = ['a', 'b'].map(name => join(root, name))
folders.forEach(folder => mkdirSync(folder, { recursive: true }))

const early = agent('early', folders[0])
const plugin = await ctx.plugin(bundle, bundle.Config(config))
const A = early
const B = agent('B', folders[1])
const C = agent('C', undefined)
seen.ready = await until(async () => (await toolNames(A)).length > 0 && (await toolNames(B)).length > 0)
seen.tools = await toolNames(A)
seen.toolsB = await toolNames(B)
seen.toolsC = await toolNames(C)
seen.global = (await hostCtx.systemPrompt.assemble({})).tools.map(tool => tool.name)
seen.prompt = await prompt(A)
seen.promptC = await prompt(C)

if (mode === 'projects') {
  for (const [key, one] of [['A', A], ['B', B]]) {
    const result = await call(one, 'mcp__engram__mem_current_project', {})
    seen[key] = { error: result.isError, text: content(result), value: result.value }
  }
  const saved = await call(A, 'mcp__engram__mem_save', { title: 'Chose pnpm', content: 'What: pnpm. Why: one lock file.' })
  seen.saved = { error: saved.isError, text: content(saved) }
  const wrong = await call(A, 'mcp__engram__mem_get_observation', { id: 424242 })
  seen.wrong = { error: wrong.isError, text: content(wrong) }
  const found = await call(A, 'mcp__engram__mem_search', { query: 'lock file' })
  seen.found = content(found)
  const foundB = await call(B, 'mcp__engram__mem_search', { query: 'lock file' })
  seen.foundB = content(foundB)
}

if (mode === 'crash') {
  for (const one of [A, B]) await call(one, 'mcp__engram__mem_current_project', {})
  const before = children()
  before.forEach(pid => process.kill(Number(pid), 'SIGKILL'))
  // the first call may have reached the dead server, which nobody can know: the next one waits for the new server
  await call(A, 'mcp__engram__mem_current_project', {})
  const result = await call(A, 'mcp__engram__mem_current_project', {})
  seen.again = { error: result.isError, text: content(result) }
  seen.replaced = await until(() => children().length === 2 && !children().some(pid => before.includes(pid)))
  seen.toolsAfter = await toolNames(A)
}

if (mode === 'churn') {
  const seed = { value: 7 }
  const random = n => (seed.value = (seed.value * 1103515245 + 12345) % 2147483648) % n
  const live = new Map()
  for (let round = 0; round < Number(process.env.BUNDLE_ROUNDS); round++) {
    const id = `r${random(4)}`
    const one = live.get(id)
    const action = random(4)
    if (!one && action < 2) live.set(id, agent(id, folders[random(2)]))
    else if (one && action === 2) {
      live.delete(id)
      await one.dispose()
    } else if (action === 3) children().slice(0, 1).forEach(pid => process.kill(Number(pid), 'SIGKILL'))
    await pause(random(30))
  }
  for (const one of live.values()) await one.dispose()
}

seen.children = children().length
await B.dispose()
seen.oneLess = await until(() => children().length <= Math.max(0, seen.children - 1))
await plugin.dispose()
seen.left = children().length
seen.toolsAtEnd = await toolNames(A)
seen.promptAtEnd = await prompt(A)
await A.dispose()
await ctx.fiber.dispose()
const handles = () => process.getActiveResourcesInfo().filter(name => /Process|Timeout/.test(name))
await until(() => handles().length === 0, 3000)
seen.handles = handles()
console.log(JSON.stringify(seen))
process.exit(0)
