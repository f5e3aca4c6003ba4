import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { putSource } from '../../../db/inventory/sources.ts'
import { performDatabaseWrite, prepareDatabaseWrite, requireSameTarget } from '../../../effects/databases/write.ts'
import { EffectRefused } from '../../../effects/effect.ts'
import { useDatabase } from '../../support/database.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { type Change, changes } from './changes.ts'
import { type Gates, openGates } from './gates.ts'
import { startReplica } from './replica.ts'
import { giveRights, type SiteServer, startSiteServer } from './site-server.ts'

/**
 * Between the card and the act something happens to what was decided about, before each piece that
 * the write sends. Each server's own log and state say whom the write met.
 */

const lacking = whyNot('databases') ?? (process.getuid?.() === 0 ? null : 'it needs root, to give a number again')
const place = temporaryDirectory()
const database = useDatabase()
const rounds = Number(process.env.RACES ?? 1_000)
const lanes = 3
/** Pieces that a write sends from the card on: eight to compare, three to act. */
const pieces = 11

const plain = {
  scheme: null,
  headers: {},
  caFile: null,
  certFile: null,
  keyFile: null,
  options: {},
  timeoutSeconds: 60,
}
let primary: SiteServer
let replica: SiteServer
let references: Record<'read' | 'write', string>
const stops: (() => Promise<unknown>)[] = []

const deps = () => ({ db: database.db, locks: database.db, sources: { directory: place.path } })

async function point(name: string, port: number): Promise<void> {
  const { read, write } = references
  const source = {
    kind: 'postgresql',
    url: `postgresql://127.0.0.1:${port}/postgres`,
    ...plain,
    credential: read,
    writeCredential: write,
  }
  await putSource(database.db, name, source, 'anna', { known: [read, write], isTrusted: true })
}

type Lane = { name: string; gates: Gates; away: Gates }
/** `piece`: before which the change happens. Null: at the same moment as the act. */
type Race = { round: number; change: Change; piece: number | null }

/** How the write ended: `done`, or the word of its refusal. */
async function race({ name, gates, away }: Lane, { round, change, piece }: Race): Promise<string> {
  await point(name, gates.port)
  gates.leadTo(primary.port)
  // A source is pointed elsewhere, or its address leads elsewhere.
  const leadAway = async () => (round % 2 ? await point(name, away.port) : gates.leadTo(replica.port))
  const begun = await change.begin({ primary, replica, round, leadAway })
  const named = { name, act: begun.act }
  gates.hold(() => undefined)
  const { stateFingerprint } = await prepareDatabaseWrite(deps(), named)
  let happened: Promise<unknown> = Promise.resolve()
  gates.hold((at) => {
    if (at === (piece ?? pieces - 1) && begun.change) happened = begun.change()
    // At the same moment the session may be met first.
    if (piece === null) happened = happened.catch(() => undefined)
    return piece === null ? undefined : happened.then(() => undefined)
  })
  try {
    const found = await requireSameTarget(deps(), named, stateFingerprint)
    const { status } = await performDatabaseWrite(deps(), named, found, `race-${round}`)
    await happened
    const isWrong = begun.change !== null && begun.isUntouched && !(await begun.isUntouched())
    return isWrong ? `${status}, and what was not meant was touched` : status
  } catch (error) {
    if (!(error instanceof EffectRefused)) throw error
    await happened
    return error.code
  } finally {
    await happened.catch(() => undefined)
    await begun.end()
  }
}

/**
 * Every change before every piece, sessions also at the same moment as the act; over again until
 * there are enough.
 */
function* listRaces(): Generator<Race> {
  const each = changes.flatMap((change) => [
    ...Array.from({ length: pieces }, (_, piece) => ({ change, piece })),
    ...(change.what.startsWith('drop') ? [] : [{ change, piece: null }]),
  ])
  for (let round = 1; round <= rounds; round++) yield { round, ...each[(round * 11) % each.length]! }
}

/** The sessions that a server ended, or whose query it cancelled, by their names. */
const listTouched = (server: SiteServer): string[] =>
  [
    ...server
      .readLog()
      .matchAll(/app=(r\d+-\w+) (?:FATAL: +terminating connection|ERROR: +canceling statement) due to (?:admin|user)/g),
  ].map(([, name = '']) => name)

const when = lacking ? describe.skip : describe

when(`writes to a real PostgreSQL${lacking ? ` (${lacking})` : ''}`, () => {
  beforeAll(async () => {
    const settings = ['wal_level=logical', 'max_replication_slots=40', 'max_wal_senders=40', 'max_connections=80']
    primary = await startSiteServer(place.path, { settings })
    stops.push(primary.stop)
    references = await giveRights(primary, place.path)
    replica = await startReplica(place.path, primary, settings)
    stops.push(replica.stop)
  })
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop()
    place.remove()
  })

  test('never touch another session, query or slot than the decided one', async () => {
    const races = listRaces()
    const ended: (Race & { how: string })[] = []
    const lane = async (_: unknown, at: number) => {
      const [gates, away] = [await openGates(primary.port), await openGates(replica.port)]
      stops.push(gates.close, away.close)
      for (const each of races) ended.push({ ...each, how: await race({ name: `lane-${at}`, gates, away }, each) })
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    for (const server of [primary, replica]) {
      await server.run(`do $$ begin raise log 'all races are over'; end $$`)
      await eventually('the log to be whole', () => server.readLog().includes('all races are over'))
    }
    const touched = [primary, replica].flatMap(listTouched)
    expect(touched.filter((name) => name.endsWith('-other'))).toEqual([])
    const isDone = ({ how }: { how: string }) => how === 'done'
    // At the same moment the server may have compared already: the session that was meant is met as
    // it goes on.
    const atOnce = touched.filter((name) => name.endsWith('-changed'))
    const roundsAtOnce = new Set(ended.filter(({ piece }) => piece === null).map(({ round }) => `r${round}-changed`))
    expect(atOnce.filter((name) => !roundsAtOnce.has(name))).toEqual([])
    const changed = ended.filter(({ change, piece }) => piece !== null && !change.what.endsWith('nothing happens'))
    // From its eighth piece on the write is connected: who leads its source elsewhere then does not
    // lead it.
    const isRight = ({ change, piece, how }: Race & { how: string }) =>
      /^(?:failed|STATE_CHANGED|SLOT_ACTIVE)$/.test(how) ||
      (how === 'done' && change.what.endsWith('another server is there') && Number(piece) >= pieces - 3)
    expect(changed.filter((each) => !isRight(each))).toEqual([])
    const left = ended.filter(({ change }) => change.what.endsWith('nothing happens'))
    expect(left.filter((each) => !isDone(each))).toEqual([])
    const sessions = ended.filter(({ change }) => !change.what.startsWith('drop'))
    const metRounds = new Set(touched.map((name) => Number(name.slice(1, name.indexOf('-')))))
    const isMet = ({ round }: Race) => metRounds.has(round)
    // A signal at the same moment may find a session that just ended, or whose query did.
    expect(sessions.filter((each) => each.piece !== null && isDone(each) !== isMet(each))).toEqual([])
    expect(sessions.filter((each) => isMet(each) && !isDone(each))).toEqual([])
    expect(touched.length).toBe(metRounds.size)
    note('changes at the same moment as the act', `${roundsAtOnce.size}, of them met as it went on ${atOnce.length}`)
    note('races between card and act', `${ended.length}, acts on what was not meant 0`)
  })
})
