import type { z } from 'zod'
import { pkgInstallArgs, pkgSearchArgs } from '../../specs/host.ts'
import {
  type CapabilityContext,
  CapabilityError,
  type CapabilityOutcome,
  type DeviceCapability,
  type RunOptions,
  toOutcome,
} from '../capability.ts'
import { isInstalled, systemPath, tail, whyNotDone } from '../programs.ts'

/**
 * A machine's package manager for `pkg.*`. Each package manager implements this type and gets a
 * line in `pkgWith`. Package names are already checked: none begins or ends with a dash.
 */
type PackageManager = {
  name: string
  /**
   * Returns null if this machine has the package manager, and otherwise what is missing, in words.
   */
  missingPrerequisite(): Promise<string | null>
  /** Returns why the agent may not install packages. Null if the agent may install them. */
  missingRights(): string | null
  /** Searches packages: `{ packages: [{ name, description }], total }` */
  search(text: string, limit: number, context: CapabilityContext): Promise<CapabilityOutcome>
  /**
   * Installs packages: `{ packages: [{ name, before, after }], output }`. Emits each line of output
   * when it comes.
   */
  install(packages: readonly string[], context: CapabilityContext): Promise<CapabilityOutcome>
  /**
   * Simulates the installation: `{ diff, checks, would_change }`. The diff lists new and changed
   * packages.
   */
  simulate(packages: readonly string[], context: CapabilityContext): Promise<CapabilityOutcome>
}

const lockSeconds = 60
const environment: RunOptions['env'] = { DEBIAN_FRONTEND: 'noninteractive', PATH: systemPath, LC_ALL: 'C.UTF-8' }

/** Debian's apt. `options` are added to every call of apt (`-o`, `Dir=/elsewhere`). */
export function apt(options: readonly string[] = []): PackageManager {
  const installing = ['apt-get', ...installOptions, ...options]
  const ask: Ask = (argv, { run }) =>
    run([argv[0]!, ...options, ...argv.slice(1)], { env: environment, confine: 'read' })
  return {
    name: 'apt',
    missingPrerequisite: async () => {
      if (!(await isInstalled('apt-get'))) return 'apt-get is not installed: this machine does not use apt'
      return (await isInstalled('apt-cache')) ? null : 'apt-cache is not installed'
    },
    // Allows any user with options, which may install packages in another root than the machine's.
    missingRights: () =>
      process.getuid!() === 0 || options.length > 0
        ? null
        : `only root installs packages, but the agent runs as user ${process.getuid!()}`,
    search: (text, limit, context) => searchPackages(ask, text, limit, context),
    install: async (packages, context) => {
      const before = await known(packages, (argv) => ask(argv, context))
      const ran = await context.run([...installing, '--', ...packages], {
        env: environment,
        confine: 'write',
        onLine: (line) => context.emit(line),
      })
      const why = whyNotDone('apt-get install', ran)
      if (why) return why
      const after = await known(packages, (argv) => ask(argv, context))
      const versions = [...after].map(([name, version]) => ({
        name,
        before: before.get(name)!.installed,
        after: version.installed,
      }))
      return { ok: true, result: { packages: versions, output: tail(ran.stdout) }, truncated: ran.truncated }
    },
    simulate: async (packages, context) => {
      await known(packages, (argv) => ask(argv, context))
      const argv = [...installing, '--simulate', '--', ...packages]
      const ran = await context.run(argv, { env: environment, confine: 'read' })
      const why = whyNotDone('apt-get install --simulate', ran)
      if (why) return why
      const lines = ran.stdout.split('\n').filter((line) => /^(?:Inst|Remv) /.test(line))
      const result = { diff: lines.map((line) => `${line}\n`).join(''), checks: [], would_change: lines.length > 0 }
      return { ok: true, result, truncated: ran.truncated }
    },
  }
}

type Ask = (argv: readonly string[], context: CapabilityContext) => ReturnType<CapabilityContext['run']>

const installOptions = [
  'install',
  '--yes',
  '--no-install-recommends',
  '--no-remove',
  '-o',
  `DPkg::Lock::Timeout=${lockSeconds}`,
  '-o',
  'APT::Get::AllowUnauthenticated=false',
  // Keeps a configuration file that was changed by hand, because nobody can answer dpkg's question.
  '-o',
  'Dpkg::Options::=--force-confdef',
  '-o',
  'Dpkg::Options::=--force-confold',
  '-o',
  'Dpkg::Use-Pty=0',
]

async function searchPackages(
  ask: Ask,
  text: string,
  limit: number,
  context: CapabilityContext,
): Promise<CapabilityOutcome> {
  const ran = await ask(['apt-cache', 'search', '--', text.replace(/[.+]/g, '[$&]')], context)
  const packages = ran.stdout.split('\n').flatMap((line) => {
    const [name, ...description] = line.split(' - ')
    return name && description.length > 0 ? [{ name, description: description.join(' - ') }] : []
  })
  const result = { packages: packages.slice(0, limit), total: packages.length }
  const truncated = ran.truncated || packages.length > limit
  return whyNotDone('apt-cache search', ran) ?? { ok: true, result, truncated }
}

type Version = { installed: string | null; candidate: string | null }

/**
 * Reads apt's versions of exactly these packages before an install. apt-get would read an unknown
 * name as a regular expression, and `a.+` as half of the archive.
 */
async function known(
  packages: readonly string[],
  ask: (argv: readonly string[]) => ReturnType<CapabilityContext['run']>,
): Promise<Map<string, Version>> {
  const names = packages.map((text) => text.split('=')[0]!)
  const ran = await ask(['apt-cache', 'policy', '--', ...names])
  const found = new Map<string, Version>()
  for (const block of ran.stdout.split(/^(?=\S)/m)) {
    const name = /^(\S+):\n/.exec(block)?.[1]
    const version = (field: string) => {
      const text = new RegExp(`^ +${field}: (.+)$`, 'm').exec(block)?.[1]
      return text === undefined || text === '(none)' ? null : text
    }
    if (name && names.includes(name))
      found.set(name, { installed: version('Installed'), candidate: version('Candidate') })
  }
  const unknown = names.filter((name) => !found.get(name)?.candidate && !found.get(name)?.installed)
  if (unknown.length > 0) throw new CapabilityError('not_found', `apt knows no package ${unknown.join(', ')}`)
  return found
}

export const searchWith = (manager: PackageManager): DeviceCapability<z.infer<typeof pkgSearchArgs>> => ({
  capability: 'pkg.search',
  args: pkgSearchArgs,
  missingPrerequisite: () => manager.missingPrerequisite(),
  weigh: () => ({ effect: 'read', reason: 'only reads', command: null }),
  run: ({ text, limit }, context) => toOutcome(context.signal, () => manager.search(text, limit, context)),
})

export const installWith = (manager: PackageManager): DeviceCapability<z.infer<typeof pkgInstallArgs>> => ({
  capability: 'pkg.install',
  args: pkgInstallArgs,
  missingPrerequisite: async () => (await manager.missingPrerequisite()) ?? manager.missingRights(),
  weigh: ({ packages }) => ({ effect: 'write', reason: `installs ${packages.join(', ')}`, command: null }),
  run: ({ packages }, context) => toOutcome(context.signal, () => manager.install(packages, context)),
  rehearse: ({ packages }, context) => toOutcome(context.signal, () => manager.simulate(packages, context)),
})

/**
 * Returns both capabilities, with options for every call of apt. Without options apt installs on
 * this machine itself.
 */
export const pkgWith = (aptOptions: readonly string[]) => ({
  install: installWith(apt(aptOptions)),
  search: searchWith(apt(aptOptions)),
})
