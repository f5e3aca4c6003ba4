import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { type RunbookRow, rowsOf, runsOnceLookedUp, runsUnasked, shouldAsk } from './runbook-rows.ts'

/**
 * Commands of public runbooks, threads and manuals, each with the page it stands on. Their labels
 * are older than any look at the judge. The half `runbooks-held` is counted and never shown:
 * whoever works on the judge reads `runbooks` alone.
 */

const tuning = rowsOf('runbooks')
const held = rowsOf('runbooks-held')

beforeAll(loadSql)

describe.each([
  ['that is read while the judge is worked on', tuning, 0],
  ['that nobody reads', held, 1],
])('the half %s', (_, rows, parity) => {
  test('is wide enough', () => {
    expect(rows.length).toBeGreaterThanOrEqual(120)
    expect(new Set(rows.map(({ program }) => program)).size).toBeGreaterThanOrEqual(45)
  })

  test('has for every row its class, and for every near read the reason why it asks', () => {
    expect(rows.filter(({ source }) => !/^(https:\/\/|github [^ /]+\/[^ /]+ )/.test(source)).length).toBe(0)
    expect(rows.filter(({ expected }) => !['safe-read', 'needs-approval'].includes(expected)).length).toBe(0)
    expect(rows.filter((row) => Boolean(row.why) !== shouldAsk(row)).length).toBe(0)
  })

  test('contains the rows that a hash of their text assigns', () => {
    const firstDigit = ({ command }: RunbookRow) => createHash('sha256').update(command).digest('hex').charAt(0)
    expect(rows.filter((row) => Number.parseInt(firstDigit(row), 16) % 2 !== parity).length).toBe(0)
  })
})

test('every command occurs once, and in no other corpus of reads', () => {
  const commands = [tuning, held, rowsOf('nightly'), rowsOf('reads')].map((rows) => rows.map(({ command }) => command))
  const [here, elsewhere] = [commands.slice(0, 2).flat(), new Set(commands.slice(2).flat())]
  expect(new Set(here).size).toBe(here.length)
  expect(here.filter((command) => elsewhere.has(command)).length).toBe(0)
})

describe('nothing that should ask runs without approval', () => {
  test.each([
    ['as it stands', runsUnasked],
    ['once its names were looked up', runsOnceLookedUp],
  ])('in the half that is read, by name, %s; in the half that nobody reads, by count', (_, runs) => {
    expect(tuning.filter(shouldAsk).filter(runs)).toEqual([])
    expect(held.filter(shouldAsk).filter(runs).length).toBe(0)
  })
})

/** The rest of the read half: a person decides about these, and why. */
const stillAsked: Record<string, readonly string[]> = {
  'sudo runs only what the manifest of a device lists word for word': [
    'sudo named-checkconf',
    'sudo netstat -p',
    'sudo fdisk -l',
    'sudo pvscan',
    'sudo gitlab-psql -c "select name',
    'sudo gitlab-psql -c "SELECT schemaname',
    'sudo grep -v check_http',
  ],
  'a whole object may hold an environment, values or a configuration; fields of it run': [
    'kubectl -n services get cm',
    'kubectl get cm istio',
    'oc -n openshift-cnv describe deploy',
    'kubectl describe application',
  ],
  'the passwords of fence devices stand in it': ['pcs cluster cib'],
  'its value is known to the shell alone': ['curl -s "$VAULT_ADDR'],
  'a connection that replicates is more than a session of reads': ['psql -U streaming_barman'],
  'a script in a language of its own': ['pgrep -f'],
  'a path alone would be made as a file where there is no such socket': ['echo "help" | socat stdio'],
  'a plug-in that nobody here knows': ['oc dev_tool'],
  'it runs a program with what a directory says': ['/usr/bin/envdir'],
  'a dump of memory by its name': ['grep -w num_allocs glusterdump'],
}

describe('of the reads', () => {
  const [tuned, counted] = [tuning, held].map((rows) => rows.filter((row) => !shouldAsk(row)))

  test('in the half that is read each runs once its names were looked up, or has its reason', () => {
    const beginnings = Object.values(stillAsked).flat()
    const asked = tuned!.filter((row) => !runsOnceLookedUp(row)).map(({ command }) => command)
    expect(asked.filter((command) => !beginnings.some((beginning) => command.startsWith(beginning)))).toEqual([])
    expect(beginnings.filter((beginning) => !asked.some((command) => command.startsWith(beginning)))).toEqual([])
  })

  test('at least as many run as before', () => {
    const counts = [tuned!, counted!].map((rows) => [
      rows.length,
      rows.filter(runsUnasked).length,
      rows.filter(runsOnceLookedUp).length,
    ])
    console.log(`reads, of them run as they stand, and once looked up: ${JSON.stringify(counts)}`)
    expect(counts[0]![2]).toBeGreaterThanOrEqual(123)
    expect(counts[1]![2]).toBeGreaterThanOrEqual(115)
  })
})
