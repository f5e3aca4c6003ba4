import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { outsideSources } from '../../domain/kinds.ts'
import { describeItems, toList, toText } from '../../domain/say.ts'
import { parseDuration } from '../../domain/source.ts'
import {
  type DeviceArgs,
  defineSpec,
  devicePath,
  lastingWrite,
  onlyLooks,
  path,
  plainRead,
  same,
  withoutUndefined,
  word,
} from './spec.ts'
import { unitName } from './unit.ts'

export const maxLogLines = 2_000

/** The name of the missing part if a device can read log files but no journals. */
export const journalLack = 'log.read of a unit'

export const logReadArgs = z.strictObject({
  /** The service whose journal is read. Either a service or a file is given. */
  unit: unitName.optional(),
  path: devicePath.optional(),
  /** Seconds before now. The device reads twice this time, so that new lines are recognised. */
  since_seconds: z.number().int().min(60).max(86_400).default(3_600),
  contains: z.array(z.string().min(1).max(200)).max(5).default([]),
})

/** The time window of a log read, in the same form as in `search_logs`. */
const logWindow = z
  .string()
  .max(20)
  .refine((text) => {
    const seconds = parseDuration(text)
    return seconds !== null && seconds >= 60 && seconds <= 86_400
  }, 'is not a duration from 1m to 24h, as 30m')

/** A directory's log files: the file that was read, the newest files, and the number of files. */
export const logAmong = z.object({
  file: z.string(),
  files: z.array(z.object({ name: z.string(), bytes: z.number(), modified: z.string() })),
  total: z.number(),
})

/**
 * The lines of a device, oldest first: milliseconds since 1970 and a text. The milliseconds are
 * `null` if neither this line nor an earlier line has a time.
 */
export const readLines = z.looseObject({
  lines: z.array(z.tuple([z.number().nullable(), z.string()])),
  /** The time of the last change of the file. For a journal, the time of the request. */
  until_ms: z.number(),
  among: logAmong.optional(),
})

export const deviceLogs = defineSpec({
  name: 'device_logs',
  calledBy: 'search_logs',
  capability: 'log.read',
  about:
    'What a service (unit) or a log file (path; of a directory the newest) on a device logs: templates with counts, new and errors first.',
  args: logReadArgs,
  input: () =>
    z.strictObject({
      unit: z
        .string()
        .max(256)
        .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*$/, 'is not the name of a service')
        .optional()
        .describe('a service, as nginx.service'),
      path: path.optional(),
      since_seconds: logReadArgs.shape.since_seconds.removeDefault().optional().describe('default 3600'),
      window: logWindow.optional().describe('as 30m, 6h'),
      contains: logReadArgs.shape.contains.removeDefault().optional().describe('each line holds these'),
    }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  readsLog: true,
  toArgs: ({ unit, window, ...rest }: DeviceArgs) =>
    withoutUndefined({
      ...rest,
      ...(window !== undefined && { since_seconds: Math.round(parseDuration(String(window)) ?? 0) }),
      ...(unit !== undefined && { unit: String(unit).endsWith('.service') ? unit : `${unit}.service` }),
    }),
  toOutput: same,
  summary: ({ unit, path: file }) => `Read the log of ${unit ?? file}`,
  say: ({ lines }, { unit, path: file }) =>
    `log of ${unit ?? file}: ${formatCount(Array.isArray(lines) ? lines.length : 0, 'line')}`,
})

export const logSpecs = [deviceLogs]

/** The name of a package. A dash at the end would tell apt to remove the package. */
const packageName = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9.+-]*[a-z0-9+.](?:=[A-Za-z0-9][A-Za-z0-9.+:~-]*[A-Za-z0-9.+~])?$/, 'is not a package name')

/** Words to search for, without pattern characters. */
export const pkgSearchArgs = z.strictObject({
  text: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 .+-]{0,99}$/, 'is not a search text'),
  limit: z.number().int().min(1).max(500).default(50),
})

export const pkgInstallArgs = z.strictObject({ packages: z.array(packageName).min(1).max(20) })

/**
 * The name of a package, checked less strictly than on the device, which checks the spelling of a
 * version.
 */
const packageWord = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9.+-]+(=[A-Za-z0-9.+:~-]+)?$/, 'is not the name of a package')
  .meta({ examples: ['nginx'] })

const pkgSearch = defineSpec({
  name: 'pkg_search',
  isRare: true,
  capability: 'pkg.search',
  about: 'Search the packages that a device could install.',
  args: pkgSearchArgs,
  // Has no limit, because the device's default of 50 packages is enough for a model. The device
  // checks the characters of the text.
  input: () => pkgSearchArgs.omit({ limit: true }).extend({ text: word.describe('words') }),
  ...plainRead,
  summary: ({ text }) => `Search packages for ${text}`,
  say: ({ packages, total }, { text }) =>
    `${text}: ${describeItems(
      toList(packages).map(({ name }) => toText(name)),
      'package',
      Number(total),
    )}`,
})

const version = z.string().nullable()
const installedVersions = z.array(z.looseObject({ name: z.string(), before: version, after: version }))

const pkgInstall = defineSpec({
  name: 'pkg_install',
  isRare: true,
  capability: 'pkg.install',
  about: 'Install packages of the operating system on a device.',
  args: pkgInstallArgs,
  input: () =>
    pkgInstallArgs.extend({
      packages: z.array(packageWord).min(1).max(20).describe('as nginx or nginx=1.24.0-2'),
    }),
  ...lastingWrite,
  streams: true,
  summary: ({ packages }: { packages: string[] }) => `Install ${packages.join(', ')}`,
  changes({ packages: told }) {
    const versions = installedVersions.safeParse(told)
    if (!versions.success) return null
    return versions.data
      .filter(({ before, after }) => before !== after)
      .map(({ name, before, after }) => `${name}: ${before ?? 'not installed'} before, ${after ?? 'not installed'} now`)
  },
  proof: {
    promised: 'the packages are installed: installing them again would change nothing',
    otherwise: 'the package manager cannot be read there; check the installed versions yourself afterwards',
  },
  promise: ({ packages }: { packages: string[] }) => ({
    look: () => ({ capability: 'pkg.install', args: { packages }, rehearse: true }),
    holds({ result }) {
      if (result === null) return { holds: false, observed: `no package ${packages.join(', ')} is known there` }
      if (typeof result.would_change !== 'boolean') return null
      return result.would_change
        ? { holds: false, observed: `${packages.join(', ')} would still have to be installed` }
        : { holds: true, observed: `installing ${packages.join(', ')} again would change nothing` }
    },
  }),
})

export const pkgSpecs = [pkgInstall, pkgSearch]

export const procListArgs = z.strictObject({
  /** A part of the process's name or command line. */
  name: z.string().min(1).max(200).optional(),
  /**
   * Lists only processes that listen on this port or have connections with it. An agent refuses
   * this argument if it is older than the argument.
   */
  port: z.number().int().min(1).max(65_535).optional().describe('who uses it'),
  limit: z.number().int().min(1).max(1_000).default(50),
})

export const procKillArgs = z.strictObject({
  pid: z.number().int().min(1).max(4_194_304),
  /** The start time that `proc.list` returned. Another process with the same pid is left alone. */
  start_time: z
    .string()
    .regex(/^\d{1,20}$/, 'is not a start_time of proc_list')
    .meta({ description: 'as proc_list gave it', examples: ['236692'] }),
  signal: z.enum(['TERM', 'KILL', 'HUP', 'INT']).default('TERM').describe('TERM first'),
})

const procList = defineSpec({
  name: 'proc_list',
  firstFor: outsideSources,
  isSituational: true,
  capability: 'proc.list',
  about: 'Processes of a device: start_time, user, command line, memory, CPU.',
  args: procListArgs,
  input: () =>
    procListArgs.extend({
      name: word.optional().describe('part of name or command line'),
      limit: z.number().int().min(1).max(1_000).optional().describe('default 50'),
    }),
  ...plainRead,
  summary: () => 'List processes',
  say: ({ processes: shown, total }, { name, port }) => {
    const named = toList(shown).map(
      ({ name: called, pid, cpu_percent: cpu }) =>
        `${toText(called)} (pid ${toText(pid)}${cpu === undefined ? '' : `, ${toText(cpu)} % CPU`})`,
    )
    const which = [name === undefined ? '' : `named ${name}`, port === undefined ? '' : `on port ${port}`].filter(
      Boolean,
    )
    return [...which, describeItems(named, 'process', Number(total))].join(': ')
  },
})

const processes = z.looseObject({
  processes: z.array(z.looseObject({ pid: z.number(), start_time: z.coerce.string() })),
  total: z.number().optional(),
})

type Kill = { pid: number; start_time: string; signal: 'TERM' | 'KILL' | 'HUP' | 'INT' }

const procKill = defineSpec({
  name: 'proc_kill',
  isRare: true,
  capability: 'proc.kill',
  about: 'Signal one process on a device, named by pid and the start_time that proc_list gave.',
  args: procKillArgs,
  // Excludes process 1. The device refuses it too and returns why, but a model need not ask.
  input: () => procKillArgs.extend({ pid: z.number().int().min(2).max(4_194_304).describe('as proc_list gave it') }),
  ...lastingWrite,
  // Reports no change for HUP, whose effect depends on the program.
  changes: ({ ended, name }, { pid, signal }: Kill) =>
    signal === 'HUP' || typeof ended !== 'boolean'
      ? null
      : [`process ${pid} (${toText(name)}) was sent ${signal}${ended ? ', and ended' : ''}`],
  summary: ({ pid, signal }: Kill, about) => {
    const verb = { TERM: 'Stop', KILL: 'Kill', INT: 'Interrupt', HUP: 'Send HUP to' }[signal]
    return `${verb} ${about ?? `process ${pid}`}`
  },
  proof: {
    promised: 'the process is gone',
    otherwise: 'no list of processes shows the effect of this signal; check yourself what the process does afterwards',
  },
  promise({ pid, start_time, signal }) {
    if (signal === 'HUP') return null
    return {
      look: () => ({ capability: 'proc.list', args: { limit: 1_000 } }),
      holds({ result }) {
        const found = processes.safeParse(result)
        if (!found.success) return null
        const { processes: shown, total } = found.data
        if (shown.some((each) => each.pid === pid && each.start_time === start_time)) {
          return { holds: false, observed: `process ${pid} still runs` }
        }
        // Returns null if the process may be among the omitted processes.
        return total !== undefined && total > shown.length ? null : { holds: true, observed: 'the process is gone' }
      },
    }
  },
})

export const procSpecs = [procList, procKill]
