import { z } from 'zod'
import { defineSpec, ofCommand, onlyLooks, present, same } from './spec.ts'

const container = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'is not the name or id of a container')

export const dockerList = defineSpec({
  name: 'docker_list',
  capability: 'docker.container.list',
  about: 'List containers on a device.',
  input: z.strictObject({ all: z.boolean().optional() }),
  ...{ effect: 'read', risk: 'none', reversible: true, proof: onlyLooks },
  toArgs: present,
  toOutput: same,
  summary: () => 'List containers',
})

export const dockerLogs = defineSpec({
  name: 'docker_logs',
  capability: 'docker.container.logs',
  about: 'The last lines that a container on a device has logged.',
  input: z.strictObject({
    container,
    tail: z.number().int().min(1).max(2_000).optional(),
    since_seconds: z.number().int().min(1).max(604_800).optional(),
  }),
  ...{ effect: 'read', risk: 'none', reversible: true, proof: onlyLooks, streams: true },
  toArgs: present,
  toOutput: same,
  summary: ({ container }) => `Logs of ${container}`,
})

export const dockerExec = defineSpec({
  name: 'docker_exec',
  capability: 'docker.container.exec',
  about: 'Run one program with its arguments in a container on a device, without a shell.',
  input: z.strictObject({
    container,
    argv: z.array(z.string().min(1).max(8_000)).min(1).max(200),
    user: z
      .string()
      .regex(/^[a-z_0-9][a-z0-9_:-]{0,63}$/, 'is not a user')
      .optional(),
  }),
  ...{ effect: 'write', risk: 'medium', reversible: false, inside: true, privileged: true, rehearses: true },
  proof: ofCommand,
  command: { field: 'argv', form: 'argv' },
  toArgs: present,
  toOutput: same,
  summary: ({ container, argv }) => `Run ${JSON.stringify(argv)} in ${container}`,
})
