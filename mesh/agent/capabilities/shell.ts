import type { z } from 'zod'
import type { CommandVerdict } from '../../../safety/command/judge.ts'
import { quote } from '../../../safety/command/unwrapped.ts'
import { evalArgs, execArgs } from '../../specs/shell.ts'
import {
  type CapabilityContext,
  type CapabilityOutcome,
  type DeviceCapability,
  failedOutcome,
  type RunResult,
} from '../capability.ts'
import { rehearseArgv, rehearseText } from '../command-rehearsal.ts'
import {
  argvVerdict,
  asRead,
  defaultDirectory,
  judgeContextOf,
  textVerdict,
  toPreconditions,
  weightOf,
} from '../guard.ts'
import { find } from '../programs.ts'
import { authorOf, identityOf } from '../repository.ts'
import { readAsRoot } from '../root-read.ts'

type ExecArgs = z.infer<typeof execArgs>

/** `shell.exec`: a program with its words, never a shell. */
const exec: DeviceCapability<ExecArgs> = {
  capability: 'shell.exec',
  args: execArgs,
  missingPrerequisite: async () => null,
  weigh: ({ argv, cwd = defaultDirectory }, { root_reads: rootReads }, own) =>
    weightOf(
      argvVerdict(argv, cwd, { secrets: own?.hidden, rootReads, knownNames: new Set(own?.names) }),
      written(argv),
      cwd,
    ),
  async run({ argv, cwd = defaultDirectory }: ExecArgs, context: CapabilityContext): Promise<CapabilityOutcome> {
    const verdict = argvVerdict(argv, cwd, judgeContextOf(context))
    const command = written(argv)
    if (verdict.rootRead && !context.isGranted)
      return outcomeOf(await readAsRoot(verdict.rootRead, context, nothingBehind), command, verdict)
    // After a yes it runs as it stands, and not in a sandbox that sudo does not work in.
    const isRead = verdict.verdict === 'run' && !verdict.rootRead
    const ended = await context.run(argv, {
      cwd,
      onLine: context.emit,
      ...(isRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, command, verdict)
  },
  /**
   * For a read, what keeps it from running unasked now, `{ unmet }`; for a write, what can be seen
   * of it before.
   */
  async rehearse({ argv, cwd = defaultDirectory }: ExecArgs, context: CapabilityContext): Promise<CapabilityOutcome> {
    const verdict = argvVerdict(argv, cwd, judgeContextOf(context))
    if (verdict.verdict !== 'run') return await rehearseArgv(argv, cwd, context)
    const unmet = await context.whyUnmet(toPreconditions(verdict, cwd))
    return { ok: true, result: { unmet }, truncated: false }
  },
}

/** Words for a program have no pipe. */
const nothingBehind = () => Promise.reject(new Error('there is no rest of a pipe'))

function written(argv: readonly string[]): string {
  return argv.map(quote).join(' ')
}

type EvalArgs = z.infer<typeof evalArgs>

/** `shell.eval`: a text for bash, as it is. */
const evaluate: DeviceCapability<EvalArgs> = {
  capability: 'shell.eval',
  args: evalArgs,
  missingPrerequisite: async () => (find('bash') ? null : 'bash is not installed'),
  weigh: ({ text, cwd = defaultDirectory }, { root_reads: rootReads }, own) =>
    weightOf(textVerdict(text, cwd, { secrets: own?.hidden, rootReads, knownNames: new Set(own?.names) }), text, cwd),
  async run({ text, cwd = defaultDirectory }: EvalArgs, context: CapabilityContext): Promise<CapabilityOutcome> {
    const verdict = textVerdict(text, cwd, judgeContextOf(context))
    const isRead = verdict.verdict === 'run'
    if (verdict.rootRead && !context.isGranted) {
      const ended = await readAsRoot(verdict.rootRead, context, (rest, { input }) =>
        context.run(inBash(rest), { cwd, onLine: context.emit, input, ...asRead(verdict) }),
      )
      return outcomeOf(ended, text, verdict)
    }
    const ended = await context.run(inBash(text), {
      cwd,
      onLine: context.emit,
      // After a yes it runs as it stands, and not in a sandbox that sudo does not work in.
      ...(isRead && !verdict.rootRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, text, verdict)
  },
  /**
   * For a read, what keeps it from running unasked now, `{ unmet }`; for a write, what can be seen
   * of it before.
   */
  async rehearse({ text, cwd = defaultDirectory }: EvalArgs, context: CapabilityContext): Promise<CapabilityOutcome> {
    const verdict = textVerdict(text, cwd, judgeContextOf(context))
    if (verdict.verdict !== 'run') return await rehearseText(text, cwd, context)
    const unmet = await context.whyUnmet(toPreconditions(verdict, cwd))
    return { ok: true, result: { unmet }, truncated: false }
  },
}

function inBash(text: string): string[] {
  return [find('bash') ?? '/bin/bash', '--noprofile', '--norc', '-c', text]
}

/** Programs that print whose something is. */
const ownerPrinters = /^(?:find|getfacl|htop|ls|lsof|namei|pgrep|ps|pstree|stat|top|tree|vdir)$/
const hiddenOwner = /\b(?:65534|nobody|nogroup)\b/
const hiddenOwners =
  'in its sandbox every user but the agent’s own is shown as 65534 (nobody): fs_stat, fs_list and proc_list name the owner'

/**
 * What became of a command: one that ended by itself is an answer whatever its exit code, and so is
 * one with more output than is kept. One that was stopped failed, with what it had said until then.
 */
function outcomeOf(
  ended: RunResult,
  command: string,
  { commands }: Pick<CommandVerdict, 'commands'>,
): CapabilityOutcome {
  const { stdout, stderr, exitCode, signal, truncated, stoppedBy, hidesOwners } = ended
  const owners =
    hidesOwners && hiddenOwner.test(stdout) && commands.some((name) => ownerPrinters.test(name)) && hiddenOwners
  const result = {
    ...(owners && { owners }),
    ...{ stdout, stderr, exit_code: exitCode, cmd_executed: command },
    ...(signal && { signal }),
  }
  if (stoppedBy === 'deadline')
    return { ...failedOutcome('timeout', 'It was stopped at the deadline.', result), truncated }
  if (stoppedBy === 'cancelled') return { ...failedOutcome('cancelled', 'It was cancelled.', result), truncated }
  if (stoppedBy === 'memory')
    return { ...failedOutcome('failed', 'It needed more memory than the manifest allows.', result), truncated }
  return { ok: true, result, truncated }
}

export const shellCapabilities = [exec, evaluate]
