import { z } from 'zod'
import { defineSpec, devicePath, onlyLooks, path, present, same } from './spec.ts'

export const diskUsageArgs = z.strictObject({
  /** Without it only file systems and deleted files: no directory is walked. */
  path: devicePath.optional(),
})

export const diskUsage = defineSpec({
  name: 'disk_usage',
  capability: 'disk.usage',
  about:
    'What fills a device: file systems with space and inodes, deleted files still held open, and the largest directories and files below a path.',
  args: diskUsageArgs,
  input: () => diskUsageArgs.extend({ path: path.optional() }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  inside: true,
  toArgs: present,
  toOutput: same,
  summary: ({ path: below }) => (below === undefined ? 'Disk usage' : `Disk usage below ${below}`),
})

export const diskSpecs = [diskUsage]
