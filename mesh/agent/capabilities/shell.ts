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

/** `shell.exec`: runs a program with its arguments, never a shell. */
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
    // Runs an approved command unchanged outside of the sandbox, in which sudo does not work.
    const isRead = verdict.verdict === 'run' && !verdict.rootRead
    const ended = await context.run(argv, {
      cwd,
      onLine: context.emit,
      ...(isRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, command, verdict)
  },
  /**
   * Returns for a read the reason why it may not run without approval now, `{ unmet }`; for a
   * write, its effects as far as they can be seen.
   */
  async rehearse({ argv, cwd = defaultDirectory }: ExecArgs, context: CapabilityContext): Promise<CapabilityOutcome> {
    const verdict = argvVerdict(argv, cwd, judgeContextOf(context))
    if (verdict.verdict !== 'run') return await rehearseArgv(argv, cwd, context)
    const unmet = await context.whyUnmet(toPreconditions(verdict, cwd))
    return { ok: true, result: { unmet }, truncated: false }
  },
}

/** A program with arguments has no pipe. */
const nothingBehind = () => Promise.reject(new Error('the pipe has no further command'))

function written(argv: readonly string[]): string {
  return argv.map(quote).join(' ')
}

type EvalArgs = z.infer<typeof evalArgs>

/** `shell.eval`: runs a text in bash, unchanged. */
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
      // Runs an approved text unchanged outside of the sandbox, in which sudo does not work.
      ...(isRead && !verdict.rootRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, text, verdict)
  },
  /**
   * Returns for a read the reason why it may not run without approval now, `{ unmet }`; for a
   * write, its effects as far as they can be seen.
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

/** Programs that print the owners of files or processes. */
const ownerPrinters = /^(?:find|getfacl|htop|ls|lsof|namei|pgrep|ps|pstree|stat|top|tree|vdir)$/
const hiddenOwner = /\b(?:65534|nobody|nogroup)\b/
const hiddenOwners =
  'in its sandbox every user but the agent’s own is shown as 65534 (nobody): fs_stat, fs_list and proc_list name the owner'

/**
 * Builds the outcome of a command. A command that ended by itself succeeded, whatever its exit
 * code, and so did a command with too much output. Any other stopped command failed, with its
 * output so far.
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
    return { ...failedOutcome('timeout', 'The command was stopped at the deadline.', result), truncated }
  if (stoppedBy === 'cancelled')
    return { ...failedOutcome('cancelled', 'The command was cancelled.', result), truncated }
  if (stoppedBy === 'memory')
    return { ...failedOutcome('failed', 'The command needed more memory than the manifest allows.', result), truncated }
  return { ok: true, result, truncated }
}

export const shellCapabilities = [exec, evaluate]
