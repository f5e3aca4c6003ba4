import { createHash } from 'node:crypto'
import { z } from 'zod'
import { outsideSources } from '../../domain/kinds.ts'
import { describeItems, describePrinted, toList, toText } from '../../domain/say.ts'
import { defineSpec, devicePath, path, plainRead, undoableWrite } from './spec.ts'

export const fsReadArgs = z.strictObject({
  path: devicePath,
  offset: z.number().int().min(0).default(0),
  max_bytes: z.number().int().min(1).max(10_000_000).default(64_000),
})

export const fsListArgs = z.strictObject({ path: devicePath, limit: z.number().int().min(1).max(1_000).default(200) })

export const fsStatArgs = z.strictObject({ path: devicePath })

export const fsWriteArgs = z.strictObject({
  path: devicePath,
  content: z.string().max(1_048_576),
  encoding: z.enum(['utf8', 'base64']).default('utf8'),
  append: z.boolean().default(false),
  /** Permission bits, such as `0644`. Default: the bits of the former file, or 0644. */
  mode: z
    .string()
    .regex(/^0?[0-7]{3}$/, 'is not a mode such as 0644')
    .meta({ description: 'as 0644; default as it was', examples: ['0644'] })
    .optional(),
  /** The digest of the required former content: the `sha256` that `fs.read` returned. */
  if_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'is not a SHA-256')
    .meta({
      description: 'as fs_read gave it: only if unchanged',
      examples: ['0'.repeat(64)],
    })
    .optional(),
})

const fsRead = defineSpec({
  name: 'fs_read',
  firstFor: outsideSources,
  isSituational: true,
  capability: 'fs.read',
  about: 'Read a file on a device, or a part from a byte offset.',
  args: fsReadArgs,
  // Limits the size of a part, because a model does not read a longer part.
  input: () =>
    fsReadArgs.extend({
      path,
      offset: z.number().int().min(0).optional().describe('bytes'),
      max_bytes: z.number().int().min(1).max(200_000).optional().describe('default 64000'),
    }),
  ...plainRead,
  summary: ({ path }) => `Read ${path}`,
  say: ({ content }, { path }) => `${path}: ${describePrinted(content)}`,
})

const fsList = defineSpec({
  name: 'fs_list',
  isRare: true,
  capability: 'fs.list',
  about: 'List a directory on a device: names, types, sizes, owners, times.',
  args: fsListArgs,
  input: () =>
    fsListArgs.extend({ path, limit: z.number().int().min(1).max(1_000).optional().describe('entries; default 200') }),
  ...plainRead,
  summary: ({ path }) => `List ${path}`,
  say: ({ entries, total }, { path }) =>
    `${path}: ${describeItems(
      toList(entries).map(({ name }) => toText(name)),
      'entry',
      Number(total),
    )}`,
})

const fsStat = defineSpec({
  name: 'fs_stat',
  isRare: true,
  capability: 'fs.stat',
  showsNoContent: true,
  about: 'Type, size, owner, mode and times of a file or directory on a device.',
  args: fsStatArgs,
  input: () => fsStatArgs.extend({ path }),
  ...plainRead,
  summary: ({ path }) => `Show metadata of ${path}`,
  say: ({ type, size, mtime, uid, owner }, { path }) =>
    `${path}: ${toText(type)}${toText(owner ?? uid) && ` of ${toText(owner ?? uid)}`}, ${toText(size)} bytes, changed ${toText(mtime)}`,
})

type Write = {
  path: string
  content: string
  encoding?: 'utf8' | 'base64'
  append?: boolean
  mode?: string
  if_sha256?: string
}

const fsWrite = defineSpec({
  name: 'fs_write',
  isRare: true,
  capability: 'fs.write',
  about: 'Write a file on a device, whole or appended, atomically; the version before is kept.',
  args: fsWriteArgs,
  // Limits the content to the length that a person can review on a card. The device's own limit is
  // the size of a request.
  input: () =>
    fsWriteArgs.extend({
      path,
      content: fsWriteArgs.shape.content.max(100_000).describe('text'),
      encoding: z.enum(['utf8', 'base64']).optional().describe('default utf8'),
      append: z.boolean().optional().describe('adds at the end'),
    }),
  ...undoableWrite,
  summary: ({ path, content, append }: Write) =>
    `${append ? 'Append' : 'Write'} ${content.length} characters ${append ? 'to' : 'as'} ${path}`,
  changes(result, { path }) {
    const { created, sha256, previous_sha256: before, mode, previous_mode: modeBefore } = result
    if (typeof sha256 !== 'string') return null
    if (created === true) return [`${path} is new`]
    if (sha256 !== before) return [`${path} has other content`]
    // Reports no change for an older agent, which does not report the file's former mode.
    if (typeof modeBefore !== 'string') return null
    return modeBefore === mode ? [] : [`mode of ${path}: ${modeBefore} before, ${toText(mode)} now`]
  },
  state: ({ path }) => ({ capability: 'fs.stat', args: { path } }),
  proof: {
    promised: 'the file holds exactly what was written',
    otherwise: 'the device does not show this file without approval; read the file yourself afterwards',
  },
  promise(input: Write) {
    const bytes = Buffer.from(input.content, input.encoding === 'base64' ? 'base64' : 'utf8')
    const whole = createHash('sha256').update(bytes).digest('hex')
    return {
      look: () => ({ capability: 'fs.read', args: { path: input.path, max_bytes: 1 } }),
      holds({ result: seen }, result) {
        if (seen === null) return { holds: false, observed: `${input.path} does not exist` }
        // Takes the digest after an append from the device, which alone knows the complete content.
        const wanted = input.append ? result?.sha256 : whole
        if (typeof seen.sha256 !== 'string' || typeof wanted !== 'string') return null
        return seen.sha256 === wanted
          ? { holds: true, observed: 'the file holds what was written' }
          : { holds: false, observed: `${input.path} holds something else` }
      },
    }
  },
})

export const fsSpecs = [fsRead, fsWrite, fsList, fsStat]

export const diskUsageArgs = z.strictObject({
  /** If absent, only file systems and deleted files are reported, and no directory is walked. */
  path: devicePath.optional(),
})

const diskUsage = defineSpec({
  name: 'disk_usage',
  isSituational: true,
  capability: 'disk.usage',
  about: 'What fills a device: space, inodes, deleted files held open, largest directories and files below a path.',
  args: diskUsageArgs,
  input: () => diskUsageArgs.extend({ path: path.optional() }),
  ...plainRead,
  summary: ({ path: below }) => (below === undefined ? 'Disk usage' : `Disk usage below ${below}`),
  say({ file_systems: all, largest }) {
    const fullest = toList(all)
      .slice(0, 2)
      .map(
        ({ mount, used_percent: used, inodes_used_percent: inodes }) =>
          `${toText(mount)} is ${toText(used)} % full${Number(inodes) > 80 ? `, inodes ${toText(inodes)} %` : ''}`,
      )
    const [first] = toList(largest)
    return [...fullest, ...(first ? [`largest: ${toText(first.path)}`] : [])].join('; ') || 'no file system was checked'
  },
})

export const diskSpecs = [diskUsage]
