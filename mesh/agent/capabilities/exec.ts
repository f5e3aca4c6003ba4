import { z } from 'zod'
import { quote } from '../../../safety/command/quote.ts'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { authorOf, identityOf } from '../repository.ts'
import { argvVerdict, defaultDirectory, seenBy, weightOf } from '../verdict.ts'
import { outcomeOf } from './ended.ts'

export const directory = z
  .string()
  .regex(/^\/[^\0]*$/, 'is not an absolute path')
  .max(4_096)
  .optional()

const args = z.strictObject({
  argv: z
    .array(
      z
        .string()
        .max(32_768)
        .regex(/^[^\0]*$/, 'holds a NUL'),
    )
    .min(1)
    .max(1_000),
  cwd: directory,
})
type Args = z.infer<typeof args>

/** `shell.exec`: a program with its words, never a shell. */
export const exec: DeviceCapability<Args> = {
  capability: 'shell.exec',
  args,
  lacks: async () => null,
  weigh: ({ argv, cwd }) => weightOf(argvVerdict(argv, cwd ?? defaultDirectory), written(argv)),
  async run({ argv, cwd }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = argvVerdict(argv, cwd ?? defaultDirectory)
    const command = written(argv)
    const isRead = verdict.verdict === 'run'
    const ended = await context.run(argv, {
      cwd: cwd ?? defaultDirectory,
      confine: isRead ? 'read' : 'write',
      onLine: context.emit,
      ...(isRead
        ? { env: verdict.environment, sees: seenBy(verdict, command) }
        : { env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, command)
  },
}

function written(argv: readonly string[]): string {
  return argv.map(quote).join(' ')
}
