import type { Proof, VerificationOutcome } from './verification.ts'

const words: Record<VerificationOutcome, string> = {
  held: 'Held',
  not_held: 'NOT held',
  open: 'Could not be read',
  unproven: 'Unproven',
}

/** The outcome for people; a word that another version wrote stands as it is. */
export function tellOutcome(outcome: string): string {
  return words[outcome as VerificationOutcome] ?? outcome.replaceAll('_', ' ')
}

/** For the card of an approval, before anybody decides. Absent: the approval was stored by a version that did not say. */
export function tellProofOfWrite(proof: Proof | undefined): string {
  if (!proof)
    return 'What will prove that this worked was not stored with this approval: look at its target afterwards.'
  if (proof.by === 'state') return `Code will prove whether this worked: ${proof.text}.`
  return `Nothing will prove that this worked: ${proof.text}.`
}
