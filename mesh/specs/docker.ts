import { z } from 'zod'
import { describeItems, describePrinted, describeRun, toList, toText, toWords } from '../../domain/say.ts'
import { isPlainName, nameKey } from '../../safety/command/known-names.ts'
import { defineSpec, ofCommand, onlyLooks, same, withoutUndefined, wordsOnCard } from './spec.ts'

/** A container by name or id. The pattern excludes any other path of the engine's API. */
const containerName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'is not a container')

/** The name or id of a container, with a length limit that a model sees in the schema. */
const container = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'is not the name or id of a container')
  .meta({ description: 'name or id', examples: ['web'] })

export const dockerListArgs = z.strictObject({ all: z.boolean().default(false) })

export const dockerLogsArgs = z.strictObject({
  container: containerName,
  tail: z.number().int().min(1).max(5_000).default(200),
  since_seconds: z.number().int().min(1).max(2_592_000).optional(),
  /** Seconds for which new output is followed. If absent, only the existing output is read. */
  follow_seconds: z.number().int().min(1).max(3_600).optional(),
})

export const dockerExecArgs = z.strictObject({
  container: containerName,
  argv: z
    .array(
      z
        .string()
        .max(32_768)
        .refine((word) => !word.includes('\0'), 'holds a NUL'),
    )
    .min(1)
    .max(1_000),
  user: z
    .string()
    .regex(/^[a-z_0-9][a-z0-9_-]{0,63}(?::[a-z_0-9][a-z0-9_-]{0,63})?$/, 'is not a user')
    .optional(),
})

const dockerList = defineSpec({
  name: 'docker_list',
  isRare: true,
  capability: 'docker.container.list',
  about: 'List containers on a device.',
  args: dockerListArgs,
  input: () => dockerListArgs.extend({ all: z.boolean().optional().describe('also stopped ones') }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  toArgs: withoutUndefined,
  toOutput: same,
  summary: () => 'List containers',
  lists: ({ containers }) =>
    toList(containers)
      .flatMap(({ name, id }) => [toText(name), toText(id), toText(id).slice(0, 12)])
      .filter(isPlainName)
      .slice(0, 300)
      .map((name) => nameKey('docker', '', name)),
  say: ({ containers, total }) =>
    describeItems(
      toList(containers).map(
        ({ name, id, state, status }) => `${toText(name) || toText(id)} ${toText(status) || toText(state)}`,
      ),
      'container',
      Number(total),
    ),
})

const dockerLogs = defineSpec({
  name: 'docker_logs',
  isRare: true,
  capability: 'docker.container.logs',
  about: 'The last lines that a container on a device has logged.',
  args: dockerLogsArgs,
  // Limits a model to 2,000 lines of the last week, without waiting for new lines.
  input: () =>
    dockerLogsArgs.omit({ follow_seconds: true }).extend({
      container,
      tail: z.number().int().min(1).max(2_000).optional().describe('lines; default 200'),
      since_seconds: z.number().int().min(1).max(604_800).optional().describe('of the last seconds'),
    }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  streams: true,
  toArgs: withoutUndefined,
  toOutput: same,
  summary: ({ container }) => `Logs of ${container}`,
  say: ({ output }, { container }) => `log of ${container}: ${describePrinted(output)}`,
})

const dockerExec = defineSpec({
  name: 'docker_exec',
  isRare: true,
  capability: 'docker.container.exec',
  about: 'Run one program with its arguments in a container on a device, without a shell.',
  args: dockerExecArgs,
  // Limits the arguments of the command to what a card can show. The device checks the spelling of
  // user and group.
  input: () =>
    dockerExecArgs.extend({
      container,
      argv: wordsOnCard,
      user: z
        .string()
        .regex(/^[a-z_0-9][a-z0-9_:-]{0,63}$/, 'is not a user')
        .meta({ description: 'as nobody or 65534:65534', examples: ['nobody'] })
        .optional(),
    }),
  effect: 'write',
  risk: 'medium',
  reversible: false,
  inside: true,
  privileged: true,
  rehearses: true,
  proof: ofCommand,
  command: { field: 'argv', form: 'argv' },
  toArgs: withoutUndefined,
  toOutput: same,
  summary: ({ container, argv }) => `Run ${JSON.stringify(argv)} in ${container}`,
  say: (result, { container, argv }) => `${toWords(argv).join(' ')} in ${container}: ${describeRun(result)}`,
})

export const dockerRestartArgs = z.strictObject({ container: containerName })

const restarted = z.looseObject({ id: z.string(), started_at: z.string() })
const listedAgain = z.looseObject({
  containers: z.array(z.looseObject({ id: z.string(), state: z.string(), status: z.string() })),
})

export const containerRestart = defineSpec({
  name: 'container_restart',
  isRare: true,
  capability: 'docker.container.restart',
  about: 'Restart a container on a device.',
  args: dockerRestartArgs,
  input: () => dockerRestartArgs.extend({ container }),
  effect: 'write',
  risk: 'medium',
  reversible: false,
  asked: true,
  privileged: true,
  rehearses: true,
  toArgs: withoutUndefined,
  toOutput: same,
  summary: ({ container }) => `Restart the container ${container}`,
  changes(result, { container }) {
    const told = restarted.safeParse(result)
    return told.success ? [`the container ${container} was started again at ${told.data.started_at}`] : null
  },
  proof: {
    promised: 'the container runs, and its health check does not report a fault',
    otherwise: 'check the container yourself afterwards',
  },
  promise: () => ({
    look: () => ({ capability: 'docker.container.list', args: { all: true } }),
    holds({ result: seen }, result) {
      const [then, now] = [restarted.safeParse(result), listedAgain.safeParse(seen)]
      if (!then.success || !now.success) return null
      const found = now.data.containers.find(({ id }) => id === then.data.id)
      if (!found) return null
      const { state, status } = found
      // Reads the container again if a health check has no result yet.
      const holds = state === 'running' && !/unhealthy|health: starting/.test(status)
      return { holds, observed: `the container is ${state} (${status})` }
    },
  }),
})

export const dockerSpecs = [dockerList, dockerExec, dockerLogs, containerRestart]
