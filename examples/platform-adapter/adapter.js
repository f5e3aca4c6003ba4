// The platform protocol over a JSON file, in plain Node: docs/how-to/own-platform.md. What is yours goes into `actions`.
//   PLATFORM_TOKEN=secret node adapter.js inventory.json journal.json 8090
import { timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [inventoryFile = 'inventory.json', journalFile = 'journal.json', port = '8090'] = process.argv.slice(2)
const token = process.env.PLATFORM_TOKEN
if (!token) throw new Error('PLATFORM_TOKEN is not set')

const read = (file) => JSON.parse(readFileSync(file, 'utf8'))
/** Whole or not at all: a process that dies in between leaves the old file. */
function write(file, value) {
  writeFileSync(`${file}.new`, JSON.stringify(value, null, 2))
  renameSync(`${file}.new`, file)
}

class Refused extends Error {
  constructor(status, detail) {
    super(detail)
    this.status = status
  }
}

const find = (list, id) => list.find((each) => each.id === id)
const isIll = (node) => node.status !== 'nominal'

/**
 * What the writes do, and what they changed: an empty list where all was as it was to be. Each may be begun a second time after a crash, so
 * each says what shall be, and not what to change.
 */
const actions = {
  async converge(id) {
    const state = read(inventoryFile)
    const ill = state.nodes.filter((node) => node.shard === id && isIll(node))
    for (const node of ill) Object.assign(node, { status: 'nominal', reason: null })
    for (const shard of state.shards) if (shard.id === id) shard.status = 'nominal'
    write(inventoryFile, state)
    return {
      detail: `${ill.length} nodes of ${id} were changed`,
      changed: ill.map((node) => `${node.id}: configuration written`),
    }
  },
  async start(id, { host }) {
    const state = read(inventoryFile)
    const vm = find(state.vms, id)
    const isThere = vm.running && vm.host === host
    Object.assign(vm, { host, running: true })
    write(inventoryFile, state)
    return { detail: `${id} runs on ${host}`, changed: isThere ? [] : [`${id} was started on ${host}`] }
  },
  async migrate(id, { from, to }) {
    const state = read(inventoryFile)
    const vm = find(state.vms, id)
    if (vm.host !== from && vm.host !== to) throw new Error(`${id} is on ${vm.host}, not on ${from}`)
    const isThere = vm.host === to
    Object.assign(vm, { host: to })
    write(inventoryFile, state)
    return { detail: `${id} runs on ${to}`, changed: isThere ? [] : [`${id} was moved to ${to}`] }
  },
}

const journal = Object.assign(Object.create(null), existsSync(journalFile) ? read(journalFile) : {})

/** Written down before it is begun: a repeat finds it here, and a restart goes on with what had not ended. */
async function perform(key) {
  const { action, id, body } = journal[key]
  const ending = await actions[action](id, body).then(
    (done) => ({ status: 'done', ...done }),
    (error) => ({ status: 'failed', detail: error.message, changed: null }),
  )
  Object.assign(journal[key], ending)
  write(journalFile, journal)
}

function answerOf(key) {
  const { status, detail, changed = null } = journal[key]
  return { key, status, detail, result: {}, changed }
}

async function accept(action, id, key, body) {
  if (!key) throw new Refused(422, 'Idempotency-Key is required')
  const known = journal[key]
  if (known && JSON.stringify([known.action, known.id, known.body]) !== JSON.stringify([action, id, body]))
    throw new Refused(422, 'this key was used for something else')
  if (!known) {
    journal[key] = { action, id, body, status: 'running', detail: 'at work' }
    write(journalFile, journal)
    void perform(key)
  }
  return answerOf(key)
}

async function answer({ method, url, headers }, text) {
  const sent = Buffer.from(headers.authorization ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  if (sent.length !== wanted.length || !timingSafeEqual(sent, wanted)) throw new Refused(401, 'another token is needed')
  const [, , kind, id = '', verb] = new URL(url, 'http://adapter').pathname.split('/').map(decodeURIComponent)
  const state = read(inventoryFile)
  if (method === 'GET' && kind === 'inventory') return state
  if (method === 'GET' && kind === 'effects' && Object.hasOwn(journal, id)) return answerOf(id)
  const isConverge = kind === 'shards' && verb === 'converge' && find(state.shards, id)
  if (method === 'GET' && isConverge) {
    const nodes = state.nodes.filter(({ shard }) => shard === id)
    return { nodes: nodes.map((node) => ({ id: node.id, changes: isIll(node) ? ['write its configuration'] : [] })) }
  }
  const isMove = kind === 'vms' && (verb === 'start' || verb === 'migrate') && find(state.vms, id)
  if (method === 'POST' && (isConverge || isMove))
    return await accept(verb, id, headers['idempotency-key'], JSON.parse(text))
  if (kind === 'vms' && (verb === 'stop' || verb === 'restart')) throw new Refused(501, 'add it to `actions`')
  throw new Refused(404, 'there is no such thing')
}

for (const [key, { status }] of Object.entries(journal)) if (status === 'running') void perform(key)

const server = createServer(async (request, response) => {
  const json = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  try {
    let text = ''
    for await (const chunk of request) text += chunk
    json(200, await answer(request, text))
  } catch (error) {
    json(error.status ?? (error instanceof SyntaxError ? 422 : 500), { detail: error.message })
  }
})
server.listen(Number(port), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
