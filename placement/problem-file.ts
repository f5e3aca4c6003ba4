import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { type PlacementProblem, placementIntent, placementLimits } from '../domain/placement.ts'
import { listFaults } from '../domain/schema-faults.ts'
import { checkProblem, type Flaw, InvalidProblemError } from './certificate.ts'
import { failureDomainOf } from './rules.ts'

const flawsTold = 10

/** The text of a document. Throws InvalidProblemError for bytes that are not UTF-8: replaced by a sign they could name another VM. */
export function decodeUtf8(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new InvalidProblemError([findUtf8Flaw(bytes)])
  return new TextDecoder().decode(bytes)
}

/** The line and the byte where a document that is not UTF-8 stops to be it, both from 1. */
export function findUtf8Flaw(bytes: Uint8Array): Flaw {
  // The longest part that is sound, where a character may be cut at the end.
  let [sound, broken] = [0, bytes.length]
  while (broken - sound > 1) {
    const middle = (sound + broken) >> 1
    if (beginsAsUtf8(bytes.subarray(0, middle))) sound = middle
    else broken = middle
  }
  const line = 1 + bytes.subarray(0, sound).reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0)
  return { path: `line ${line}`, message: `byte ${broken} is not UTF-8` }
}

function beginsAsUtf8(part: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(part, { stream: true })
    return true
  } catch {
    return false
  }
}

/**
 * Text that `JSON.parse` takes, without the keys that are given twice: it would silently keep the last. Throws SyntaxError for text that is
 * no JSON, InvalidProblemError with the path of each key that is given twice in one object.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  const flaws = findDuplicateKeys(text)
  if (flaws.length > 0) throw new InvalidProblemError(flaws.slice(0, flawsTold))
  return value
}

type Level = { keys: Set<string> | null; at: string | number }

/** Reads sound JSON by its strings, brackets and commas; nothing else matters for keys. */
function findDuplicateKeys(text: string): Flaw[] {
  const flaws: Flaw[] = []
  const levels: Level[] = []
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]/g
  for (let token = tokens.exec(text); token !== null; token = tokens.exec(text)) {
    const level = levels.at(-1)
    const [found, colon] = token
    if (found === '{') levels.push({ keys: new Set(), at: '' })
    else if (found === '[') levels.push({ keys: null, at: 0 })
    else if (found === '}' || found === ']') levels.pop()
    else if (found === ',' && typeof level?.at === 'number') level.at += 1
    else if (colon !== undefined && level?.keys) {
      // As it is meant: the same key may be written in two ways.
      level.at = JSON.parse(found.slice(0, -colon.length)) as string
      if (level.keys.has(level.at)) {
        const line = text.slice(0, token.index).split('\n').length
        flaws.push({
          path: levels.map(({ at }) => at).join('.'),
          message: `the key is given twice, again in line ${line}`,
        })
      }
      level.keys.add(level.at)
    }
  }
  return flaws
}

const name = z.string().min(1).max(200)
const names = z.array(name).max(1_000)
const ramMib = z.number().int().positive().max(1_000_000_000)
const cpuMc = z.number().int().positive().max(1_000_000_000)

const fileHost = z.strictObject({
  name,
  ram_mib: ramMib,
  cpu_mc: cpuMc,
  rack: name.nullish(),
  region: name.nullish(),
  state: z.enum(['live', 'draining', 'dead']).default('live'),
})

const fileVm = z.strictObject({
  /** Numbers as Proxmox VE has them, or names. */
  vmid: z.union([name, z.number().int().positive()]).transform(String),
  ram_mib: ramMib,
  cpu_mc: cpuMc,
  ha_group: name.nullish(),
  affinity_group: name.nullish(),
  host: name.nullish(),
  /** Without it: whether its host lives. */
  running: z.boolean().optional(),
  priority: z.number().int().min(0).max(1_000).default(0),
  pinned_to: z.union([name.transform((one) => [one]), names]).default([]),
  forbidden_hosts: names.default([]),
})

/**
 * A problem as somebody writes it down (docs/explanation/placement.md). Without `host_ids`, all dead hosts are recovered from, or all draining ones
 * drained.
 */
const placementFile = z.strictObject({
  intent: placementIntent.default('recover'),
  host_ids: names.optional(),
  vm_ids: z
    .array(z.union([name, z.number().int().positive()]).transform(String))
    .max(20_000)
    .optional(),
  use_rack_constraints: z.boolean().default(false),
  cpu_overcommit_percent: placementLimits.shape.cpuOvercommitPercent,
  ram_reserve_percent: placementLimits.shape.ramReservePercent,
  hosts: z.array(fileHost).min(1).max(5_000),
  vms: z.array(fileVm).max(50_000),
})
type PlacementFile = z.infer<typeof placementFile>

/**
 * The problem that somebody wrote down. Throws InvalidProblemError with the path of every field that is wrong, in the words of
 * the file. Stricter than an inventory is taken: a group that no cluster of these hosts could keep apart is a mistake here.
 */
export function readProblemFile(given: unknown): PlacementProblem {
  const parsed = placementFile.safeParse(given)
  if (!parsed.success) {
    throw new InvalidProblemError(
      listFaults(parsed.error, 10).map(({ field, message }) => ({ path: field || 'the problem', message })),
    )
  }
  const problem = toProblem(parsed.data)
  try {
    checkProblem(problem)
  } catch (error) {
    if (error instanceof InvalidProblemError) throw new InvalidProblemError(error.flaws.map(toFileWords))
    throw error
  }
  const flaws = findOversizedGroups(problem)
  if (flaws.length > 0) throw new InvalidProblemError(flaws)
  return problem
}

function toProblem(file: PlacementFile): PlacementProblem {
  const stateOf = new Map(file.hosts.map((host) => [host.name, host.state]))
  const isAbout = file.intent === 'drain' ? 'draining' : 'dead'
  const concerned = file.hosts.filter(({ state }) => state === isAbout).map((host) => host.name)
  return {
    intent: file.intent,
    hostIds: file.host_ids ?? (file.intent === 'rebalance' ? [] : concerned),
    vmIds: file.vm_ids ?? null,
    useRackConstraints: file.use_rack_constraints,
    limits: { cpuOvercommitPercent: file.cpu_overcommit_percent, ramReservePercent: file.ram_reserve_percent },
    hosts: file.hosts.map(({ name, ram_mib, cpu_mc, rack, region, state }) => ({
      name,
      ramMib: ram_mib,
      cpuMc: cpu_mc,
      rack: rack ?? null,
      region: region ?? null,
      state,
    })),
    vms: file.vms.map((vm) => ({
      vm: vm.vmid,
      ramMib: vm.ram_mib,
      cpuMc: vm.cpu_mc,
      haGroup: vm.ha_group ?? null,
      host: vm.host ?? null,
      running: vm.running ?? (vm.host != null && stateOf.get(vm.host) !== 'dead'),
      priority: vm.priority,
      pinnedTo: vm.pinned_to,
      forbiddenHosts: vm.forbidden_hosts,
      affinityGroup: vm.affinity_group ?? null,
    })),
  }
}

function toFileWords({ path, message }: Flaw): Flaw {
  return { path: path.replace(/\.vm$/, '.vmid').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), message }
}

function findOversizedGroups({ hosts, vms, useRackConstraints }: PlacementProblem): Flaw[] {
  const domains = new Set(hosts.map((host) => failureDomainOf({ useRackConstraints }, host))).size
  const grouped = Map.groupBy(
    [...vms.entries()].filter(([, { haGroup }]) => haGroup !== null),
    ([, vm]) => vm.haGroup as string,
  )
  return [...grouped].flatMap(([group, members]) => {
    if (members.length <= domains) return []
    const kind = useRackConstraints ? 'racks' : 'hosts'
    const message = `HA group ${group} has ${members.length} members to keep apart and there are ${domains} ${kind}`
    return [{ path: `vms.${members[domains]![0]}.ha_group`, message }]
  })
}
