import { z } from 'zod'
import { type DeviceArgs, defineSpec, devicePath, onlyLooks, path, present, same } from './spec.ts'
import { unitName } from './unit.ts'

export const mostLogLines = 2_000

export const logReadArgs = z.strictObject({
  /** The journal of a service, or a file: one of them. */
  unit: unitName.optional(),
  path: devicePath.optional(),
  /** Lines of twice this time are read, so that what is new shows. */
  since_seconds: z.number().int().min(60).max(86_400).default(3_600),
  contains: z.array(z.string().min(1).max(200)).max(5).default([]),
})

/** Lines as a device answers them: milliseconds since 1970 and a text, oldest first. `null`: the line has no time, nor has one before it. */
export const readLines = z.looseObject({
  lines: z.array(z.tuple([z.number().nullable(), z.string()])),
  /** When the file was written last; of a journal the time of the question. */
  until_ms: z.number(),
})

export const deviceLogs = defineSpec({
  name: 'device_logs',
  capability: 'log.read',
  about:
    'What a service (unit) or a log file (path) on a device says: templates with counts, new ones and errors first.',
  args: logReadArgs,
  input: () =>
    z.strictObject({
      unit: z
        .string()
        .max(256)
        .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*$/, 'is not the name of a service')
        .optional(),
      path: path.optional(),
      since_seconds: logReadArgs.shape.since_seconds.removeDefault().optional(),
      contains: logReadArgs.shape.contains.removeDefault().optional(),
    }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  readsLog: true,
  toArgs: ({ unit, ...rest }: DeviceArgs) =>
    present({
      ...rest,
      ...(unit !== undefined && { unit: String(unit).endsWith('.service') ? unit : `${unit}.service` }),
    }),
  toOutput: same,
  summary: ({ unit, path: file }) => `Read the log of ${unit ?? file}`,
})

export const logSpecs = [deviceLogs]
