import { createInterface } from 'node:readline'
import { type PracticeAnswer, type PracticeCard, practiceCards, scorePractice } from '../../lab/practice.ts'
import { formatApproval } from '../approvals/card.ts'
import { getTerminalWidth, paint, print, printError, printJson, printNote, wrap } from '../ui/terminal.ts'

/**
 * Shows ten questions as the agent asks them, reads the answers, and says at the end which were
 * traps and why. Needs nothing running. Answers come from the terminal, or a line each from stdin.
 */
export async function practise({ json = false }: { json?: boolean }): Promise<void> {
  const cards = practiceCards(new Date())
  printNote(
    `${cards.length} questions. Some are traps: the card of each trap says what speaks against it. Nothing runs.`,
  )
  const answers = await readAnswers(cards)
  const score = scorePractice(cards, answers)
  if (json) return printJson(score)
  print(`\n${paint('bold', 'What it came to')}`)
  for (const { asked, decision, trap, isRight } of score.cards) {
    print(
      `  ${isRight ? paint('green', '✔') : paint('red', '✖')} ${decision === 'deny' ? 'denied' : 'approved'}: ${asked}`,
    )
    if (trap) print(`      ${wrap(`Trap: ${trap}`, getTerminalWidth() - 8, '      ')}`)
    else if (!isRight) print('      Nothing on its card speaks against it.')
  }
  print(
    `\n  ${score.caught} of ${score.traps} traps caught, ${score.approved} of ${score.sound} sound ones approved, ${score.medianSeconds.toFixed(0)} s a card.`,
  )
  if (answers.length < cards.length) printNote(`You left ${cards.length - answers.length} unanswered.`)
}

async function readAnswers(cards: readonly PracticeCard[]): Promise<PracticeAnswer[]> {
  const lines = createInterface({ input: process.stdin })
  // Readline catches Ctrl-C: it ends the practice as it ends any command.
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
  // The question is what was asked for, also with --quiet; stdout is for the score.
  printError(
    `\n${paint('bold', `Question ${at + 1} of ${cards.length}`)}\n\n${formatApproval(card.approval)}\n\nApprove, deny or quit?`,
  )
  return performance.now()
}
