import type { z } from 'zod'
import { plainText } from '../../clients/slack/text.ts'
import { type Approval, type DenialCategory, denialCategory } from '../../domain/approval.ts'
import type { denialMetadata } from './payload.ts'

const labels: Record<DenialCategory, string> = {
  wrong_target: 'Wrong target',
  too_risky: 'Too risky',
  wrong_time: 'Wrong time',
  need_evidence: 'Needs more evidence',
  other: 'Something else: say what',
}

/** Asks why not: the agent reads the category and the words. */
export function denialModal(approval: Approval, carried: z.infer<typeof denialMetadata>): object {
  return {
    type: 'modal',
    callback_id: 'deny',
    private_metadata: JSON.stringify(carried),
    title: plainText('Deny', 24),
    submit: plainText('Deny', 24),
    close: plainText('Back', 24),
    blocks: [
      { type: 'section', text: plainText(`${approval.tool}: ${approval.dryRun.summary}`, 1_000) },
      {
        type: 'input',
        block_id: 'category',
        label: plainText('Why not?', 100),
        element: {
          type: 'static_select',
          action_id: 'category',
          options: denialCategory.options.map((value) => ({ text: plainText(labels[value], 75), value })),
        },
      },
      {
        type: 'input',
        block_id: 'words',
        optional: true,
        label: plainText('In words, for the agent', 100),
        element: { type: 'plain_text_input', action_id: 'words', multiline: true, max_length: 2_000 },
      },
    ],
  }
}
