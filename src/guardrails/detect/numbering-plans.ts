import { createRequire } from 'node:module';

/** The part of libphonenumber-js in use: numbering plans as patterns of national numbers. */
interface PlanType {
  pattern(): string;
  possibleLengths(): number[];
}
interface Plan {
  callingCode(): string;
  nationalNumberPattern(): string;
  nationalPrefix(): string | undefined;
  possibleLengths(): number[];
  hasTypes(): boolean;
  type(name: string): PlanType | undefined;
}
interface Metadata {
  numberingPlan: Plan;
  selectNumberingPlan(region: string): unknown;
  hasCountry(region: string): boolean;
  hasCallingCode(code: string): boolean;
  isNonGeographicCallingCode(code: string): boolean;
  getCountryCodesForCallingCode(code: string): string[] | undefined;
}

const TYPES = [
  'FIXED_LINE',
  'MOBILE',
  'PREMIUM_RATE',
  'TOLL_FREE',
  'SHARED_COST',
  'VOIP',
  'PERSONAL_NUMBER',
  'PAGER',
  'UAN',
  'VOICEMAIL',
];
const CODE_DIGITS_MAX = 3;

interface Region {
  code: string;
  national_prefix: string | undefined;
}

/** National numbers of all regions that share a calling code. */
interface NationalNumbers {
  isValid(number: string): boolean;
  lengths: ReadonlySet<number>;
}

/** Validates telephone numbers by the numbering plans of all countries. */
export interface NumberingPlans {
  /** Validates a number that starts with its calling code. `possible`: only its length is valid. */
  international(digits: string): 'valid' | 'possible' | undefined;
  /** Whether a number is valid as it is dialled within a region. */
  isNational(digits: string, region: string): boolean;
  /** The trunk prefix of a region, often `0`. Undefined if it has none. */
  prefixOf(region: string): string | undefined;
  hasRegion(region: string): boolean;
}

function numbersOf(plans: readonly Plan[]): NationalNumbers {
  const checks = plans.map((plan) => {
    const types = plan.hasTypes()
      ? TYPES.flatMap((name) => {
          const type = plan.type(name);
          return type?.pattern()
            ? [{ expression: new RegExp(`^(?:${type.pattern()})$`), lengths: type.possibleLengths() }]
            : [];
        })
      : [];
    return { general: new RegExp(`^(?:${plan.nationalNumberPattern()})$`), types };
  });
  return {
    isValid: (number) =>
      checks.some(
        ({ general, types }) =>
          general.test(number) &&
          (types.length === 0 ||
            types.some(
              ({ expression, lengths }) =>
                (lengths.length === 0 || lengths.includes(number.length)) && expression.test(number),
            )),
      ),
    lengths: new Set(plans.flatMap((plan) => plan.possibleLengths())),
  };
}

/** Reads the plans of libphonenumber-js, which takes some tens of milliseconds. Only filters of telephone numbers need them. */
export function readNumberingPlans(): NumberingPlans {
  const require = createRequire(import.meta.url);
  const core = require('libphonenumber-js/core') as { Metadata: new (data: unknown) => Metadata };
  const metadata = new core.Metadata(require('libphonenumber-js/metadata.max.json'));
  const planOf = (region: string): Plan => {
    metadata.selectNumberingPlan(region);
    return metadata.numberingPlan;
  };
  const numbersByCode = new Map<string, NationalNumbers>();
  const numbersOfCode = (code: string): NationalNumbers => {
    let numbers = numbersByCode.get(code);
    if (numbers === undefined) {
      const regions = metadata.isNonGeographicCallingCode(code)
        ? [code]
        : (metadata.getCountryCodesForCallingCode(code) ?? []);
      numbers = numbersOf(regions.map(planOf));
      numbersByCode.set(code, numbers);
    }
    return numbers;
  };
  const regions = new Map<string, Region>();
  const regionOf = (name: string): Region => {
    let region = regions.get(name);
    if (region === undefined) {
      const plan = planOf(name);
      region = { code: plan.callingCode(), national_prefix: plan.nationalPrefix() || undefined };
      regions.set(name, region);
    }
    return region;
  };
  return {
    international(digits) {
      for (let length = 1; length <= CODE_DIGITS_MAX; length += 1) {
        const code = digits.slice(0, length);
        // No calling code is a prefix of another (ITU-T E.164, section 6).
        if (!metadata.hasCallingCode(code)) continue;
        const numbers = numbersOfCode(code);
        const national = digits.slice(length);
        if (numbers.isValid(national)) return 'valid';
        return numbers.lengths.has(national.length) ? 'possible' : undefined;
      }
      return undefined;
    },
    isNational(digits, name) {
      const { code, national_prefix } = regionOf(name);
      const numbers = numbersOfCode(code);
      const hasPrefix = national_prefix !== undefined && digits.startsWith(national_prefix);
      if (hasPrefix && numbers.isValid(digits.slice(national_prefix.length))) return true;
      return numbers.isValid(digits);
    },
    prefixOf: (name) => regionOf(name).national_prefix,
    hasRegion: (name) => metadata.hasCountry(name),
  };
}
