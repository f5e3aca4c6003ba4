import { lstat, mkdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { z } from 'zod'
import { kindOfSystemPath } from '../specs/spec.ts'
import { type CapabilityContext, CapabilityError, type CapabilityOutcome } from './capability.ts'
import { diffOf, shownFiles, type Trees } from './checkout.ts'
import { type ContainerEngine, engineId, open, pathOf, requestJson, word } from './engine.ts'
import { whyNotDone } from './programs.ts'
import { type Copy, isFilled, runChecks } from './rehearsal.ts'
import { reportOutcome, restsOnLines } from './rehearsal-report.ts'
import { changed, inCheckout } from './repository.ts'

const inspected = z.looseObject({
  Id: engineId,
  Name: word().default(''),
  Image: word().optional(),
  Config: z.looseObject({
    Image: word().optional(),
    User: word().optional(),
    WorkingDir: word(1_000).optional(),
    Env: z.array(z.string()).nullish(),
  }),
  State: z
    .looseObject({
      Status: word().optional(),
      Running: z.boolean().optional(),
      Paused: z.boolean().optional(),
      StartedAt: word().optional(),
    })
    .default({}),
  HostConfig: z
    .looseObject({ Privileged: z.boolean().optional(), PidMode: word().optional(), NetworkMode: word().optional() })
    .default({}),
  Mounts: z
    .array(z.looseObject({ Source: word().optional(), Destination: word().optional(), RW: z.boolean().optional() }))
    .default([]),
})
type Inspected = z.infer<typeof inspected>

type ExecRequest = { container: string; argv: readonly string[]; user?: string }

/** The most files that a card shows. */
const maxFiles = 8
const usualPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * Describes a command in a container without running anything there: the container, the user, the
 * program and the files. The engine describes the files from outside. The container is looked up by
 * name once, and the approval is valid only for its id.
 */
export async function rehearseInContainer(
  engine: ContainerEngine,
  asked: ExecRequest,
  signal: AbortSignal,
): Promise<CapabilityOutcome> {
  const found = await requestJson(engine, { method: 'GET', path: pathOf(asked.container) }, inspected, signal)
  const { Config: config, State: state, HostConfig: host } = found
  if (state.Running === false)
    throw new CapabilityError('conflict', `container ${asked.container} does not run: it is ${state.Status}`)
  const user = asked.user ?? (config.User || 'root')
  const directory = config.WorkingDir || '/'
  const image = config.Image ?? found.Image ?? 'an unknown image'
  const told = [
    `container ${found.Name.replace(/^\//, '')} (${found.Id.slice(0, 12)}) of ${image}, ${state.Status ?? 'state unknown'}${since(state)}`,
    `runs as user ${user} in ${directory}`,
    ...reachOf(found),
  ]
  const rests = [
    found.Id,
    found.Image ?? '',
    user,
    directory,
    String(host.Privileged ?? false),
    String(state.Paused ?? false),
  ]
  const program = await programIn(engine, found, asked.argv[0] ?? '', directory, signal)
  told.push(
    program
      ? `program ${asked.argv[0]}: ${program.told}`
      : `program ${asked.argv[0]}: does not exist, so it would not start`,
  )
  rests.push(program?.rests ?? 'absent')
  const files = asked.argv
    .slice(1)
    .filter((word) => /^(?:\/|\.\.?\/)/.test(word) && kindOfSystemPath(posix.resolve(directory, word)) === null)
  for (const word of files.slice(0, maxFiles)) {
    const fact = await fileIn(engine, found.Id, posix.resolve(directory, word), signal)
    told.push(fact?.told ?? `${word}: does not exist`)
    rests.push(fact?.rests ?? `${word} absent`)
  }
  const untried = ['Nothing was run in the container, so the program was not tried.']
  const container = found.Name.replace(/^\//, '')
  return reportOutcome(
    { told, untried, rests: restsOnLines(rests), tried: false },
    { container, container_id: found.Id },
  )
}

const since = ({ StartedAt }: Inspected['State']): string =>
  StartedAt ? ` since ${StartedAt.slice(0, 19).replace('T', ' ')} UTC` : ''

/** Describes how a program can get out of its container. The approval covers all these ways. */
function reachOf({ HostConfig: host, Mounts: mounts }: Inspected): string[] {
  const ways = [
    ...(host.Privileged ? ['the container is privileged'] : []),
    ...(host.PidMode === 'host' ? ["the container can see the device's processes"] : []),
    ...(host.NetworkMode === 'host' ? ["the container has the device's network"] : []),
    ...mounts
      .filter(
        ({ RW, Source = '' }) =>
          RW !== false && /^\/(?:$|etc|var\/run|run|root|home|proc|sys|dev|boot|usr)(?:\/|$)/.test(Source),
      )
      .map(({ Source, Destination }) => `the container may write ${Source} of the device as ${Destination}`),
  ]
  return ways.length === 0 ? [] : [`has access outside the container: ${ways.join(', ')}`]
}

async function programIn(
  engine: ContainerEngine,
  { Id, Config }: Inspected,
  word: string,
  directory: string,
  signal: AbortSignal,
) {
  const path = Config.Env?.find((each) => each.startsWith('PATH='))?.slice('PATH='.length) ?? usualPath
  const places = word.includes('/')
    ? [posix.resolve(directory, word)]
    : path.split(':').map((each) => posix.join(each, word))
  for (const place of places.slice(0, 20)) {
    const fact = await fileIn(engine, Id, place, signal)
    if (fact) return fact
  }
  return null
}

const pathStat = z.looseObject({
  size: z.number(),
  mode: z.number(),
  mtime: word(40),
  linkTarget: word().default(''),
})

/** Reads a path's description from a header of the engine. Null if the path has none. */
async function fileIn(engine: ContainerEngine, id: string, path: string, signal: AbortSignal) {
  try {
    const answer = await open(engine, 'HEAD', `/containers/${id}/archive?path=${encodeURIComponent(path)}`, signal)
    answer.resume()
    const header = String(answer.headers['x-docker-container-path-stat'] ?? '')
    const said: unknown = JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
    const { size, mtime, mode, linkTarget: target } = pathStat.parse(said)
    const to = target ? ` (a link to ${target})` : ''
    const content = isFilled(path) ? '' : `${size} ${mtime}`
    const changed = mtime.slice(0, 19).replace('T', ' ')
    return {
      told: `${path}${to}, ${size} bytes, changed ${changed}`,
      rests: `${path} ${target} ${mode} ${content}`,
    }
  } catch (error) {
    if (signal.aborted) throw error
    return null
  }
}

/**
 * The most bytes of a tree that is copied completely, because a check of one file may read others.
 */
const laidBytes = 64 * 1024 * 1024

type Env = Record<string, string>

/**
 * Prepares a separate index and object store for a trial commit. The checkout's index and object
 * store stay unchanged.
 */
export async function environmentIn(directory: string, path: string): Promise<Env> {
  const objects = join(directory, 'objects')
  await mkdir(objects)
  return {
    GIT_INDEX_FILE: join(directory, 'index'),
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: join(path, '.git', 'objects'),
  }
}

/** Runs git in a checkout and returns its output. Throws if git failed. */
export async function output(path: string, words: readonly string[], context: CapabilityContext, env: Env = {}) {
  const ran = await inCheckout(path, words, context, { env })
  const why = whyNotDone(`git ${words[0]}`, ran)
  if (why && !why.ok) throw new CapabilityError(why.code, why.message)
  return ran.stdout
}

/**
 * Reports the changes that a commit with this tree makes, and copies its files for the checks: `{
 * diff, checks, would_change, path, files }`.
 */
export async function reportTree(
  trees: Trees,
  { directory, env }: { directory: string; env: Env },
  context: CapabilityContext,
): Promise<CapabilityOutcome> {
  const { path, head } = trees
  const files = await changed(path, head, trees.tree, context, { env })
  const { diff, truncated } = await diffOf(trees, files, context, env)

  const laid = join(directory, 'tree')
  await mkdir(laid)
  if (files.length > 0 && context.manifest.checks.length > 0) {
    const what = await overlayEntries(trees, context, env)
    if (what.length > 0) await output(path, ['checkout-index', `--prefix=${laid}/`, ...what], context, env)
  }
  const copies = await Promise.all(files.map((name) => copyOf(path, laid, name)))
  const checks = await runChecks(
    copies.flatMap((copy) => copy ?? []),
    laid,
    context,
  )
  const result = { diff, checks, would_change: files.length > 0, path, files }
  return { ok: true, result, truncated }
}

/**
 * Chooses all files of the tree if they are small enough together. Otherwise chooses the files that
 * the commit changes without removing them.
 */
async function overlayEntries({ path, head, tree }: Trees, context: CapabilityContext, env: Env): Promise<string[]> {
  const { stdout, exitCode } = await inCheckout(path, ['ls-tree', '-r', '-l', tree], context, { env })
  // The format of a line: "100644 blob <id> <size>\t<name>"
  const sizes = stdout.split('\n').map((line) => Number(/^\d+ blob \w+ +(\d+)\t/.exec(line)?.[1] ?? 0))
  if (exitCode === 0 && sizes.reduce((sum, size) => sum + size, 0) <= laidBytes) return ['--all']
  const left = await changed(path, head, tree, context, { env, removed: false })
  return left.length === 0 ? [] : ['--', ...left.slice(0, shownFiles)]
}

/**
 * Returns a file and its copy if the tree has a regular file there. A removed file cannot be
 * checked, and a symbolic link would lead out of the copy.
 */
async function copyOf(path: string, laid: string, name: string): Promise<Copy | null> {
  const copy = join(laid, name)
  const found = await lstat(copy).catch(() => null)
  return found?.isFile() ? { path: join(path, name), copy } : null
}
