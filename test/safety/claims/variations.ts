import type { Claim } from '../../../domain/claim.ts'

type Change = (claim: Claim) => Claim | null

const text = (claim: Claim, changed: string): Claim | null =>
  changed === claim.text ? null : { ...claim, text: changed }
const quotes = (claim: Claim, change: (text: string) => string): Claim => ({
  ...claim,
  quotes: claim.quotes.map(({ seq, text: quoted }) => ({ seq, text: change(quoted) })),
})

/** Other ways to say and to quote the same thing, each as true as what it is made of. */
const changes: Record<string, Change> = {
  'percent in words': (claim) => text(claim, claim.text.replaceAll(' %', ' percent')),
  'percent without a blank': (claim) => text(claim, claim.text.replaceAll(' %', '%')),
  'thousands with commas': (claim) =>
    text(claim, claim.text.replace(/(?<![\w.:-])(\d{1,3})(\d{3})(?= (?:MiB|bytes))/g, '$1,$2')),
  'a row in parentheses': (claim) => text(claim, `${claim.text.replace(/\.$/, '')} (row ${claim.quotes[0]?.seq}).`),
  'a sentence before': (claim) => text(claim, `As the result shows: ${claim.text}`),
  'no full stop': (claim) => text(claim, claim.text.replace(/\.$/, '')),
  'healthy for nominal': (claim) => text(claim, claim.text.replace(/\bnominal\b/g, 'healthy')),
  'about a rounded number': (claim) =>
    text(
      claim,
      claim.text.replace(
        /(?<!about )\b(\d{3,4})(?= (?:MiB|ms|more))/g,
        (digits) => `about ${Number(Number(digits).toPrecision(2))}`,
      ),
    ),
  'quotes as JSON escapes': (claim) => quotes(claim, (quoted) => JSON.stringify(quoted).slice(1, -1)),
  'quotes with blanks': (claim) => quotes(claim, (quoted) => quoted.replace(/":/g, '" : ').replace(/,"/g, ', "')),
  'quotes without quotation marks': (claim) => quotes(claim, (quoted) => quoted.replaceAll('"', '')),
  'quotes in capitals': (claim) => quotes(claim, (quoted) => quoted.toUpperCase()),
}

export function variationsOf(claim: Claim): { way: string; claim: Claim }[] {
  return Object.entries(changes).flatMap(([way, change]) => {
    const varied = change(claim)
    return varied ? [{ way, claim: varied }] : []
  })
}
