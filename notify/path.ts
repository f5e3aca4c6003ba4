/** Where a person looks, below the public address: the card for a question, the list for a digest, else the incident. */
export function pathOf(stored: unknown, incidentId: string): string {
  const { approval, incidents } = stored as {
    approval?: { id: string } | null
    incidents?: { status: string }[]
  }
  if (approval) return `approvals/${approval.id}`
  if (!incidents || incidents.length < 2) return `incidents/${incidentId}`
  return incidents.every(({ status }) => status === 'escalated') ? 'incidents?status=escalated' : 'incidents'
}
