import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type CapabilityRequest, type Manifest, manifest } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import { hashOf, verifyChain } from '../../../mesh/agent/chain.ts'
import { type GuardContext, type GuardRuling, rule } from '../../../mesh/agent/guard.ts'
import { aManifest, aRequest, keys } from '../../support/running-agent.ts'

/**
 * The labelled corpus and what it is played against: the texts, the guard's word, and pictures of
 * trees before and after.
 */

export const own = keys()
/**
 * Our own, and whatever else is named: `COMMANDS='a.json b.json' npm test --
 * test/mesh/agent/corpus`, each `[{ "command": … }]`.
 */
const corpora = [
  ...['reads', 'writes', 'holes', 'surroundings', 'nightly'].map(
    (name) => new URL(`../../data/commands/${name}.json`, import.meta.url),
  ),
  ...(process.env.COMMANDS?.split(' ') ?? []),
]
export const commands = [
  ...new Set(
    corpora.flatMap((file) =>
      (JSON.parse(readFileSync(file, 'utf8')) as { command: string }[]).map(({ command }) => command),
    ),
  ),
]
const guarded: GuardContext = {
  manifest: manifest.parse(aManifest(own)) as Manifest,
  keys: new Map([[own.control.id, { key: own.controlPublic, notAfterMs: null }]]),
  available: new Map(allCapabilities.map((capability) => [capability.capability, capability])),
  unavailable: {},
  sandbox: 'unshare',
  hidden: [],
  names: [],
  nowMs: Date.now(),
  isUsedGrant: () => false,
}
const request = { stream: false, rehearse: false, ...aRequest(own, 'shell.eval', { text: 'x' }) }
export const ruled = (text: string): GuardRuling =>
  rule({ ...request, args: { text } } as unknown as CapabilityRequest, guarded)

/**
 * A root of its own for an unprivileged user who may write everywhere in it; programs and libraries
 * are the machine's, read-only.
 */
export function throwAwayRoot(uid: number, root: string): string {
  for (const directory of [
    'etc',
    'var/log/nginx',
    'var/lib',
    'home/ops',
    'root',
    'srv/app',
    'tmp',
    'proc',
    'dev',
    'usr',
    'run',
    'opt',
  ])
    mkdirSync(join(root, directory), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64']) {
    const found = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (found?.isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name))
    else if (found) mkdirSync(join(root, name))
  }
  for (const name of [
    'passwd',
    'group',
    'hosts',
    'os-release',
    'resolv.conf',
    'fstab',
    'debian_version',
    'ld.so.cache',
    'nsswitch.conf',
  ])
    if (existsSync(`/etc/${name}`)) writeFileSync(join(root, 'etc', name), readFileSync(`/etc/${name}`))
  for (const name of ['syslog', 'messages', 'kern.log', 'dpkg.log', 'auth.log', 'nginx/access.log', 'nginx/error.log'])
    writeFileSync(join(root, 'var/log', name), 'one error\ntwo lines\n')
  for (const name of ['home/ops/notes', 'srv/app/app.conf', 'tmp/x', 'tmp/h', 'root/.bashrc'])
    writeFileSync(join(root, name), `${name}\n`)
  for (const path of everything(root)) if (process.getuid?.() === 0) chownSync(path, uid, uid)
  return root
}

function everything(root: string): string[] {
  return [
    root,
    ...readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath, entry.name)),
  ]
}

/** All that can be told of a tree but when it was read. */
export function picture(root: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const name of ['', ...(readdirSync(root, { recursive: true }) as string[])].sort()) {
    const path = join(root, name)
    const stat = lstatSync(path, { bigint: true })
    const content = stat.isFile() ? hashOf(readFileSync(path)) : stat.isSymbolicLink() ? readlinkSync(path) : ''
    found.set(name, [stat.mode, stat.uid, stat.size, stat.mtimeNs, stat.ctimeNs, stat.nlink, content].join(' '))
  }
  return found
}

export function changes(before: Map<string, string>, after: Map<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path)).sort()
}

export const ownSecret = 'only-the-agent-knows-this'

/** All of the state but what the agent writes with every call. */
export function stateOf(state: string): Map<string, string> {
  const own = /^(?:$|head\.json|nonces|journal(?:$|\/)|rehearsals$)/
  return new Map([...picture(state)].filter(([path]) => !own.test(path)))
}

/** Entries of the journal that no answer stands for, and answers that no entry stands for. */
export function unexplained(state: string, answered: ReadonlySet<string>): string[] {
  const left = new Set(answered)
  const odd: string[] = []
  const requests = new Set([...answered].map((each) => each.split(' ')[0]))
  const chain = verifyChain(join(state, 'journal'), (entry, hash) => {
    if (!('request_id' in entry)) return
    if (!requests.has(entry.request_id)) odd.push(`${entry.kind} ${entry.request_id}`)
    left.delete(`${entry.request_id} ${hash}`)
  })
  return [...(chain.ok ? [] : [chain.reason]), ...odd, ...left]
}
