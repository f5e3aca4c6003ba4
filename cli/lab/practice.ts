import { createInterface } from 'node:readline'
import { type PracticeAnswer, type PracticeCard, practiceCards, scorePractice } from '../../lab/practice.ts'
import { formatApproval } from '../approvals/card.ts'
import { getTerminalWidth, paint, print, printError, printJson, printNote, wrap } from '../ui/terminal.ts'

/**
 * Shows ten requests for approval as the agent would send them, reads the answers, and finally
 * explains which requests were traps. Needs no running Nightshift. Reads answers from the terminal,
 * or line by line from stdin.
 */
export async function practise({ json = false }: { json?: boolean }): Promise<void> {
  const cards = practiceCards(new Date())
  printNote(`${cards.length} questions. Some are traps: the card of each trap shows a reason to deny it. Nothing runs.`)
  const answers = await readAnswers(cards)
  const score = scorePractice(cards, answers)
  if (json) return printJson(score)
  print(`\n${paint('bold', 'Your result')}`)
  for (const { asked, decision, trap, isRight } of score.cards) {
    print(
      `  ${isRight ? paint('green', '✔') : paint('red', '✖')} ${decision === 'deny' ? 'denied' : 'approved'}: ${asked}`,
    )
    if (trap) print(`      ${wrap(`Trap: ${trap}`, getTerminalWidth() - 8, '      ')}`)
    else if (!isRight) print('      Nothing on the card of this question is a reason to deny the action.')
  }
  print(
    `\n  ${score.caught} of ${score.traps} traps denied, ${score.approved} of ${score.sound} safe questions approved, ${score.medianSeconds.toFixed(0)} s per card.`,
  )
  if (answers.length < cards.length) printNote(`You left ${cards.length - answers.length} questions unanswered.`)
}

async function readAnswers(cards: readonly PracticeCard[]): Promise<PracticeAnswer[]> {
  const lines = createInterface({ input: process.stdin })
  // Passes on Ctrl-C, which Readline catches, so that it ends the practice.
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const answers: PracticeAnswer[] = []
  let shownMs = show(cards, 0)
  for await (const line of lines) {
    const word = line.trim().toLowerCase()
    if (word === 'q' || word === 'quit') break
    const decision = decisions[word]
    if (!decision) {
      printError('Write approve, deny, or quit.')
      continue
    }
    answers.push({ decision, seconds: (performance.now() - shownMs) / 1_000 })
    if (answers.length === cards.length) break
    shownMs = show(cards, answers.length)
  }
  lines.close()
  return answers
}

const decisions: Record<string, PracticeAnswer['decision']> = {
  a: 'approve',
  approve: 'approve',
  d: 'deny',
  deny: 'deny',
}

function show(cards: readonly PracticeCard[], at: number): number {
  const card = cards[at] as PracticeCard
  // Prints the question to stderr even with --quiet, because stdout is for the score.
  printError(
    `\n${paint('bold', `Question ${at + 1} of ${cards.length}`)}\n\n${formatApproval(card.approval)}\n\nApprove, deny or quit?`,
  )
  return performance.now()
}
