/**
 * Texts written for this project in which people and addresses are marked: `{…}` a name, `<…>` an address. Names are
 * composed by a seed from those that are common in each country; some of them are in no list of the gateway.
 */
interface Locale {
  firstNames: string;
  family: string;
  sentences: readonly string[];
}

export const LOCALES: Readonly<Record<string, Locale>> = {
  'United States': {
    firstNames:
      'James Mary Robert Patricia Jennifer Michael Linda David Elizabeth Barbara Susan Jessica Karen Ashley Tyler Brianna Deshawn Latoya',
    family:
      'Smith Johnson Williams Brown Jones Davis Miller Rodriguez Anderson Thomas Jackson Thompson Hernandez Washington Kowalczyk Fitzgerald Abernathy',
    sentences: [
      'My name is {G F} and I cannot log in.',
      'Please refund {G F}, who ordered last week.',
      'The patient, Mr. {F}, was admitted on Monday.',
      'Regards,\n{G F}',
      'Hi {G},\n\nthe invoice is attached.',
      '{G F} lives at <1420 Maple Avenue, Springfield, IL 62704> now.',
      'Ship it to {G F}, <77 Massachusetts Ave, Apt 4B, Cambridge, MA 02139>.',
      'Did {G F} sign the contract that Dr. {G F} wrote?',
      'Send mail to <P.O. Box 4411, Austin, TX 78701>.',
    ],
  },
  'United Kingdom': {
    firstNames: 'Oliver Amelia Harry Isla Charlotte Alfie Nigel Gemma Rhys Siobhan Callum Eilidh',
    family: 'Taylor Davies Evans Wilson Roberts Wright Robinson Hughes Patel Khan O’Connor McGregor',
    sentences: [
      'I spoke with {G F} about the lease.',
      'Dear Mrs. {F},\n\nthank you for your letter.',
      '{G F} moved to <221B Baker Street, London NW1 6XE>.',
      'The parcel for {G F} went to <14 Elm Grove, Leeds LS6 2DB>.',
      'Kind regards,\n{G F}',
    ],
  },
  Germany: {
    firstNames: 'Thomas Sabine Andreas Claudia Stefan Katrin Jürgen Ursula Lukas Leonie Torsten Heike',
    family: 'Müller Schmidt Schneider Fischer Weber Wagner Becker Schulz Hoffmann Koch Krüger Lindemann',
    sentences: [
      'Mein Name ist {G F}.',
      'Bitte rufen Sie Herrn {F} zurück.',
      'Frau {F} wohnt in der <Hauptstraße 12, 10115 Berlin>.',
      'Die Rechnung geht an {G F}, <Goethestr. 5a, 80336 München>.',
      'Mit freundlichen Grüßen\n{G F}',
      'Gestern hat {G F} gekündigt.',
    ],
  },
  France: {
    firstNames: 'Jean Marie Pierre Nathalie Philippe Isabelle Laurent Sandrine Julien Camille Thibault Élodie',
    family: 'Martin Bernard Dubois Durand Lefebvre Moreau Laurent Girard Rousseau Fontaine Chevallier Delacroix',
    sentences: [
      "Je m'appelle {G F}.",
      'Madame {F} habite au <12 rue de la Paix, 75002 Paris>.',
      'Veuillez contacter {G F} demain.',
      'Cordialement,\n{G F}',
      'Livraison chez {G F}, <8 bis avenue des Ternes, 75017 Paris>.',
    ],
  },
  Spain: {
    firstNames: 'Antonio María Manuel Carmen José Ana Francisco Laura Javier Lucía Álvaro Montserrat',
    family: 'García Fernández González Rodríguez López Martínez Sánchez Pérez Gómez Ruiz Navarro Etxebarria',
    sentences: [
      'Me llamo {G F F}.',
      'El señor {F} vive en <Calle Mayor 5, 28013 Madrid>.',
      'Un paciente, {G F}, pidió cita.',
      'Saludos,\n{G F}',
      'Envíelo a {G F}, <C/ Alcalá 120, 3º B, 28009 Madrid>.',
    ],
  },
  Brazil: {
    firstNames: 'João Maria José Ana Antônio Francisca Carlos Adriana Paulo Juliana Thiago Larissa',
    family: 'Silva Santos Oliveira Souza Rodrigues Ferreira Alves Pereira Lima Gomes Ribeiro Cavalcanti',
    sentences: [
      'Meu nome é {G F}.',
      'A cliente {G F} ligou ontem.',
      'Entregue na <Rua Augusta, 1500 - Consolação, São Paulo - SP, 01304-001>.',
      'Abraços,\n{G F}',
    ],
  },
  Italy: {
    firstNames: 'Giuseppe Maria Giovanni Anna Antonio Rosa Marco Francesca Luca Chiara Alessandro Beatrice',
    family: 'Rossi Russo Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco Bruno Pellegrini',
    sentences: [
      'Mi chiamo {G F}.',
      'Il signor {F} abita in <Via Roma 10, 00184 Roma>.',
      'Ho visto {G F} ieri.',
      'Cordiali saluti,\n{G F}',
    ],
  },
  India: {
    firstNames: 'Aarav Priya Rahul Ananya Vikram Sunita Arjun Deepika Sanjay Kavya Rohan Meera',
    family: 'Sharma Patel Singh Kumar Gupta Reddy Iyer Nair Mehta Chatterjee Banerjee Deshmukh',
    sentences: [
      'I work with {G F} in Pune.',
      'Please ask {G F} for the report.',
      'Best,\n{G F}',
      'Mrs. {F} called twice.',
    ],
  },
  Turkey: {
    firstNames: 'Mehmet Ayşe Mustafa Fatma Ahmet Zeynep Hüseyin Elif Emre Selin',
    family: 'Yılmaz Kaya Demir Çelik Şahin Yıldız Öztürk Aydın Arslan Doğan',
    sentences: ['{G F} asked for a refund.', 'The account belongs to {G F}.', 'Dear {G F},\nwelcome.'],
  },
  Russia: {
    firstNames: 'Иван Мария Сергей Ольга Дмитрий Анна Алексей Елена Николай Татьяна',
    family: 'Иванов Петров Сидоров Кузнецов Попов Соколов Лебедев Козлов Новиков Морозов',
    sentences: [
      'Меня зовут {G F}.',
      'Вчера {G F} подписал договор.',
      'С уважением,\n{G F}',
      'Он живёт по адресу <ул. Ленина, д. 5, кв. 12>.',
    ],
  },
  China: {
    firstNames: 'Wei Fang Xiaoming Jing Lei Yan Jianguo Meiling',
    family: 'Wang Li Zhang Liu Chen Yang Zhao Huang',
    sentences: [
      'I met {F G} in Shanghai.',
      'The order of {G F} is late.',
      '我叫{王小明}。',
      '他住在<北京市朝阳区建国路93号>。',
    ],
  },
  Japan: {
    firstNames: 'Haruto Yui Takashi Sakura Kenji Aiko Hiroshi Yuki',
    family: 'Sato Suzuki Takahashi Tanaka Watanabe Ito Yamamoto Nakamura',
    sentences: [
      '{G F} joined the call.',
      '{田中}さんに電話してください。',
      '住所は<東京都千代田区千代田1-1>です。',
      'Please write to {G F}.',
    ],
  },
};

/** Ordinary texts without any name or address. */
export const NOBODY: readonly string[] = `The Thread Pool is full and Visual Studio crashes.
Set the timezone to Europe/Berlin and the locale to German.
The Paris agreement was signed in December.
Deploy to Google Cloud Platform, Amazon Web Services or Microsoft Azure.
Ruby on Rails, Spring Boot and Django are web frameworks.
Claude Sonnet and Gemini Pro are models; GPT-4 is another.
New York, San Francisco and Los Angeles are cities.
The United Nations and the European Union agreed on Monday.
const userName = getUser(request.params.id);
class HttpServer extends EventEmitter { constructor(options) { super(options); } }
public static void Main(String[] args) { Console.WriteLine("Hello World"); }
SELECT FirstName, LastName FROM Customers WHERE Country = 'Mexico';
ERROR 2026-05-01 12:00:00 Connection to Redis Cluster lost, retrying in 5 seconds
Step 3 Place the file in the folder. Step 4 Close the connection.
We use React Native, Tailwind CSS and Next.js with TypeScript.
The Apache Software Foundation maintains Apache Kafka and Apache Spark.
Version 24 of Node is the current one; Monitoring 3 was released in April.
Hello World! Hi Team, the build is green.
Dear Customer,\\nyour order has been shipped.
Kind regards,\\nThe Support Team
Write a function that sorts a list of names.
Visual Basic, Azure Functions, Google Maps and Apple Pay are products.
The Great Wall of China and Mount Everest are sights.
import { Worker } from 'node:worker_threads';
Der Server läuft auf Port 8080. Die Datenbank ist PostgreSQL 16.
Das Bundesministerium hat am Montag die Verordnung veröffentlicht.
La base de datos está en Madrid y el servidor en Barcelona.
Le serveur se trouve à Paris et la base de données à Lyon.
Memory: M2 with 8GB, M3 with 16GB. Use DDR4 or DDR5.
The Binary Search Tree and the Hash Map are data structures.
GitHub Actions, Circle CI and Jenkins run the tests.
Q3 Revenue grew by 12 percent in North America.
Read the Getting Started guide and the API Reference.
Linear Regression, Random Forest and Gradient Boosting are methods.
Open the Control Panel, then System Settings.
The Null Pointer Exception occurs in Main Activity.
Turn left after 200 meters, then drive 5 minutes.
Black Friday and Cyber Monday are in November.
Windows Server 2022 and Red Hat Enterprise Linux are supported.
The Object Relational Mapper creates a Foreign Key on the Orders table.`
  .split('\n')
  .map((line) => line.replaceAll('\\n', '\n'));

/** A text without its marks, and the positions of the marked parts. */
export function unmarked(marked: string): { text: string; names: [number, number][]; addresses: [number, number][] } {
  const places = { names: [] as [number, number][], addresses: [] as [number, number][] };
  let text = '';
  let start = 0;
  for (const sign of marked) {
    if (sign === '{' || sign === '<') start = text.length;
    else if (sign === '}') places.names.push([start, text.length]);
    else if (sign === '>') places.addresses.push([start, text.length]);
    else text += sign;
  }
  return { text, ...places };
}

/** Each sentence of a locale this number of times, with names by a seed. */
export function marked(locale: Locale, times: number, draw: () => number): string[] {
  const pick = (list: string) => {
    const names = list.split(' ');
    return names[Math.floor(draw() * names.length)] ?? '';
  };
  return Array.from({ length: times }, () => locale.sentences)
    .flat()
    .map((sentence) =>
      sentence.replace(
        /\{([GF ]+)\}/g,
        (_, parts: string) =>
          `{${parts.replace(/[GF]/g, (part) => pick(part === 'G' ? locale.firstNames : locale.family))}}`,
      ),
    );
}
