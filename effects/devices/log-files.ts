import { z } from 'zod'
import type { Db } from '../../db/connect.ts'
import { executable, type LogFile } from '../../domain/device.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { specOf } from '../../mesh/registry.ts'
import { type EffectDeps, EffectRefused } from '../effect.ts'
import { askDevice } from './ask-device.ts'
import { buildReadKey, type Executor, mapCall, requireExecutor } from './executor.ts'

const listed = z.object({
  entries: z.array(z.looseObject({ name: z.string(), type: z.string(), size: z.number(), mtime: z.string() })),
})

const maxDirectories = 4
const maxFiles = 6
const listLimit = 500
const deadlineMs = 3_000

/** Directories of logs, as the Filesystem Hierarchy Standard and most programs name them. */
const logDirectory = /(^|\/)logs?(\/|$)/
/** Rotated and packed files, whose lines cannot be read without unpacking. */
const packed = /\.(gz|xz|zst|bz2|zip)$/

/**
 * Lists at most six log files that the machine's agent may read, the newest first. The files are in
 * those directories of the agent that are named `log` or `logs`, or in such a directory directly
 * below another directory of the agent. Reads no log file. Empty if no agent can list files.
 */
export async function listLogFiles(deps: EffectDeps, resource: ResourceRef): Promise<LogFile[]> {
  const executor = await executorOf(deps.db, resource)
  if (!executor) return []
  const roots = executor.device.terms.roots.map(({ path }) => path)
  const named = roots.filter((path) => logDirectory.test(path))
  const below = roots
    .filter((path) => !logDirectory.test(path))
    .flatMap((path) => ['logs', 'log'].map((name) => `${path === '/' ? '' : path}/${name}`))
  const directories = [...named, ...below].slice(0, maxDirectories)
  // Queries all directories at once, so that an agent that does not respond delays the context by
  // one deadline only.
  const files = (await Promise.all(directories.map((path) => filesIn(deps, executor, path)))).flat()
  return files.sort((a, b) => Date.parse(b.changed) - Date.parse(a.changed)).slice(0, maxFiles)
}

const list = specOf('fs.list')

/** Finds the machine's own agent; null if the agent cannot be called now or does not list files. */
async function executorOf(db: Db, resource: ResourceRef): Promise<Executor | null> {
  const own = executable.safeParse({ kind: resource.kind, id: resource.id }).data
  if (!own) return null
  try {
    const executor = await requireExecutor(db, own.id)
    mapCall(executor, list, { path: '/' })
    return executor.through === null ? executor : null
  } catch (error) {
    if (error instanceof EffectRefused) return null
    throw error
  }
}

/** Lists the files of one directory; none if the directory does not exist or may not be listed. */
async function filesIn(deps: EffectDeps, executor: Executor, path: string): Promise<LogFile[]> {
  const mapped = mapCall(executor, list, { path, limit: listLimit })
  const { capability, args } = mapped
  const key = buildReadKey('context', 'log-files')
  const reply = await askDevice(deps, executor.device, { key, capability, args, deadlineMs })
  if (reply.kind !== 'answer' || !reply.answer.ok) return []
  const { entries = [] } = listed.safeParse(reply.answer.result).data ?? {}
  return entries
    .filter(({ type, name, size }) => type === 'file' && size > 0 && !packed.test(name))
    .map(({ name, size, mtime }) => ({ path: `${path}/${name}`, bytes: size, changed: mtime }))
}
